// What each family's config.json means; the defaults are those of transformers' configuration classes.
#include "storage/checkpoint/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <system_error>

#include "storage/checkpoint/rope_config.hpp"
#include "storage/file/mapped_file.hpp"
#include "storage/json/json_fields.hpp"

namespace sangam {
namespace {

constexpr std::size_t kConfigBytesMax = 1'000'000;
constexpr std::int64_t kVocabularyMax = std::int64_t{1} << 24;
constexpr std::int64_t kWidthMax = std::int64_t{1} << 20;
constexpr std::int64_t kContextMax = std::int64_t{1} << 27;
constexpr std::int64_t kLayersMax = 1024;
constexpr std::int64_t kHeadsMax = 4096;
constexpr std::int64_t kHeadDimMax = 1024;
constexpr Limits<std::int64_t> kTokenLimits = {0, kVocabularyMax - 1};

/// What a family takes for fields that its config.json leaves out.
struct Family {
  std::string_view model_type;
  Architecture architecture;
  std::int64_t context;
  std::int64_t kv_heads;    ///< 0: as many as heads
  std::int64_t head_dim;    ///< 0: hidden size over heads
  bool has_token_defaults;  ///< bos 1 and eos 2
};

constexpr std::array kFamilies = {
    Family{"llama", Architecture::llama, 2048, 0, 0, true},
    Family{"mistral", Architecture::mistral, 131072, 8, 0, true},
    Family{"qwen2", Architecture::qwen2, 32768, 32, 0, false},
    Family{"qwen3", Architecture::qwen3, 32768, 32, 128, false},
};

/// Refuses what we would compute wrongly without noticing.
const Family* family_of(JsonFields& fields) {
  const std::string type = fields.text("model_type");
  const auto* family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                    [&](const Family& known) { return known.model_type == type; });
  if (family == kFamilies.end()) fields.refuse("model_type", "supported are llama, mistral, qwen2, qwen3");
  if (fields.has("quantization_config"))
    fields.refuse("quantization_config", "quantised checkpoints are not supported; use the original in bf16");
  if (fields.maybe_text("hidden_act").value_or("silu") != "silu")
    fields.refuse("hidden_act", "only silu is supported");
  return fields.error() ? nullptr : family;
}

void read_heads(JsonFields& fields, const Family& family, ModelConfig& config) {
  config.heads = fields.integer("num_attention_heads", {1, kHeadsMax});
  const bool as_heads = fields.is_null("num_key_value_heads") || family.kv_heads == 0;
  config.kv_heads = fields.maybe_integer("num_key_value_heads", {1, kHeadsMax})
                        .value_or(as_heads ? config.heads : family.kv_heads);
  if (config.heads % config.kv_heads != 0)
    fields.refuse("num_key_value_heads", fmt::format("{} heads are not a multiple of {} key-value heads",
                                                     config.heads, config.kv_heads));
  const bool derived = !fields.has("head_dim") && family.head_dim == 0;
  if (derived && config.hidden_size % config.heads != 0)
    fields.refuse("hidden_size",
                  fmt::format("is not a multiple of num_attention_heads = {}, and no head_dim is stated",
                              config.heads));
  config.head_dim = fields.maybe_integer("head_dim", {2, kHeadDimMax})
                        .value_or(derived ? config.hidden_size / config.heads : family.head_dim);
  if (config.head_dim % 2 != 0 || config.head_dim < 2 || config.head_dim > kHeadDimMax)
    fields.refuse("head_dim", fmt::format("is {}; must be even, from 2 to {}", config.head_dim, kHeadDimMax));
}

void read_sizes(JsonFields& fields, const Family& family, ModelConfig& config) {
  config.architecture = family.architecture;
  config.vocab_size = fields.integer("vocab_size", {1, kVocabularyMax});
  config.hidden_size = fields.integer("hidden_size", {1, kWidthMax});
  config.intermediate_size = fields.integer("intermediate_size", {1, kWidthMax});
  config.layers = fields.integer("num_hidden_layers", {1, kLayersMax});
  config.context = fields.maybe_integer("max_position_embeddings", {1, kContextMax}).value_or(family.context);
  config.rms_norm_eps = fields.maybe_number("rms_norm_eps", {0.0, 0.1}).value_or(1e-6);
  read_heads(fields, family, config);
}

/// The number of layers with a sliding window, as `layer_types` lists them or Qwen's other field implies.
std::int64_t windowed_layers(JsonFields& fields, const ModelConfig& config) {
  if (config.architecture == Architecture::mistral) return config.layers;
  const auto* types = fields.maybe_array("layer_types");
  if (!types) {
    const std::int64_t first = fields.maybe_integer("max_window_layers", {0, kLayersMax}).value_or(28);
    return std::max<std::int64_t>(0, config.layers - first);
  }
  if (types->size() != static_cast<std::size_t>(config.layers))
    fields.refuse("layer_types", fmt::format("lists {} layers of {}", types->size(), config.layers));
  std::int64_t windowed = 0;
  for (const auto& type : *types) {
    if (type == "sliding_attention") ++windowed;
    if (type != "sliding_attention" && type != "full_attention")
      fields.refuse("layer_types", "supported are full_attention and sliding_attention");
  }
  return windowed;
}

void read_window(JsonFields& fields, ModelConfig& config) {
  if (config.architecture == Architecture::llama) return;
  const bool mistral = config.architecture == Architecture::mistral;
  if (!mistral && !fields.maybe_flag("use_sliding_window").value_or(false)) return;
  if (fields.is_null("sliding_window")) return;
  const std::int64_t window = fields.maybe_integer("sliding_window", {1, kContextMax}).value_or(4096);
  if (window >= config.context) return;  // never in effect
  const std::int64_t windowed = windowed_layers(fields, config);
  if (windowed == 0) return;
  if (windowed != config.layers)
    fields.refuse("sliding_window",
                  fmt::format("holds in {} of {} layers; windows in some layers only are not supported",
                              windowed, config.layers));
  config.sliding_window = window;
}

void read_projections(JsonFields& fields, ModelConfig& config) {
  const bool attention_bias = fields.maybe_flag("attention_bias").value_or(false);
  const bool mlp_bias = fields.maybe_flag("mlp_bias").value_or(false);
  switch (config.architecture) {
    case Architecture::llama:
      config.qkv_bias = config.output_bias = attention_bias;
      config.mlp_bias = mlp_bias;
      break;
    case Architecture::mistral: break;
    case Architecture::qwen2: config.qkv_bias = true; break;
    case Architecture::qwen3:
      config.qkv_bias = config.output_bias = attention_bias;
      config.qk_norm = true;
      break;
  }
  config.tied_embeddings = fields.maybe_flag("tie_word_embeddings").value_or(false);
}

void read_dtype(JsonFields& fields, ModelConfig& config) {
  const char* field = fields.has("dtype") ? "dtype" : "torch_dtype";
  std::string name = fields.maybe_text(field).value_or("float32");
  if (name.starts_with("torch.")) name.erase(0, 6);
  if (name == "bfloat16") {
    config.dtype = DType::bf16;
  } else if (name == "float16" || name == "half") {
    config.dtype = DType::f16;
  } else if (name == "float32" || name == "float") {
    config.dtype = DType::f32;
  } else {
    fields.refuse(field, "supported are bfloat16, float16, float32");
  }
}

/// Each once, in order of appearance.
std::vector<TokenId> tokens_of(const std::vector<std::int64_t>& ids) {
  std::vector<TokenId> tokens;
  for (const std::int64_t id : ids)
    if (std::find(tokens.begin(), tokens.end(), TokenId(id)) == tokens.end()) tokens.push_back(TokenId(id));
  return tokens;
}

void read_tokens(JsonFields& fields, const Family& family, ModelConfig& config) {
  const bool defaults_bos = family.has_token_defaults && !fields.is_null("bos_token_id");
  if (fields.has("bos_token_id") || defaults_bos) {
    const std::int64_t bos = fields.maybe_integer("bos_token_id", kTokenLimits).value_or(1);
    if (bos >= config.vocab_size)
      fields.refuse("bos_token_id", fmt::format("is {}, beyond vocab_size = {}", bos, config.vocab_size));
    config.bos_token = TokenId(bos);
    config.has_bos_token = true;
  }
  // An end token beyond the vocabulary can never be generated, so it does no harm; some models have one.
  config.eos_tokens = tokens_of(fields.integers("eos_token_id", kTokenLimits));
  if (family.has_token_defaults && !fields.has("eos_token_id") && !fields.is_null("eos_token_id"))
    config.eos_tokens = {2};
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json, const std::string& place) {
  const auto object = parse_json_object(json, place);
  if (!object) return object.error();
  JsonFields fields(*object, place);
  const Family* family = family_of(fields);
  if (!family) return *fields.error();
  ModelConfig config;
  read_sizes(fields, *family, config);
  if (fields.error()) return *fields.error();  // what follows compares with these sizes
  read_window(fields, config);
  read_rope(fields, place, config);
  read_projections(fields, config);
  read_dtype(fields, config);
  read_tokens(fields, *family, config);
  if (fields.error()) return *fields.error();
  return config;
}

Result<ModelConfig> read_model_config(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  const auto file = MappedFile::open_small(path, kConfigBytesMax);
  if (!file) return file.error();
  return parse_model_config(file->text(), path.string());
}

Result<GenerationDefaults> parse_generation_defaults(std::string_view json, const std::string& place) {
  const auto object = parse_json_object(json, place);
  if (!object) return object.error();
  JsonFields fields(*object, place);
  GenerationDefaults defaults;
  defaults.temperature = fields.maybe_number("temperature", {0.0, 100.0});
  defaults.top_k = fields.maybe_integer("top_k", {0, kVocabularyMax});
  defaults.top_p = fields.maybe_number("top_p", {0.0, 1.0});
  defaults.min_p = fields.maybe_number("min_p", {0.0, 1.0});
  defaults.repetition_penalty = fields.maybe_number("repetition_penalty", {1e-6, 100.0});
  defaults.do_sample = fields.maybe_flag("do_sample");
  defaults.max_new_tokens = fields.maybe_integer("max_new_tokens", {1, kContextMax});
  defaults.eos_tokens = tokens_of(fields.integers("eos_token_id", kTokenLimits));
  if (fields.error()) return *fields.error();
  return defaults;
}

Result<GenerationDefaults> read_generation_defaults(const std::filesystem::path& folder) {
  const auto path = folder / "generation_config.json";
  const auto file = MappedFile::open_small(path, kConfigBytesMax);
  if (!file && file.error().code == ErrorCode::not_found) return GenerationDefaults{};
  if (!file) return file.error();
  return parse_generation_defaults(file->text(), path.string());
}

}  // namespace sangam
