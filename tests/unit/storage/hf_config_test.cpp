// Configurations against what transformers reads (data/configs.json), and the words of each refusal.
#include "storage/checkpoint/hf_config.hpp"

#include <boost/json.hpp>
#include <map>

#include "tests/unit/storage/folder.hpp"

using namespace sangam;
using namespace sangam::tests;
namespace json = boost::json;

namespace {

const std::string kSmall =
    R"({"model_type":"llama","vocab_size":512,"hidden_size":64,"intermediate_size":96,"num_hidden_layers":4,)"
    R"("num_attention_heads":4)";

/// The small configuration with more fields, or with others than it had (the last of two counts).
std::string with(const std::string& fields) {
  return kSmall + (fields.empty() ? "" : "," + fields) + "}";
}

void check_refused(const std::string& text, std::initializer_list<const char*> words) {
  const auto config = parse_model_config(text, "dir/config.json");
  CAPTURE(text);
  REQUIRE_FALSE(config);
  CAPTURE(config.error().context);
  CHECK(config.error().context.starts_with("dir/config.json: "));
  for (const char* word : words) CHECK_MESSAGE(has(config.error().context, word), std::string(word));
}

double number(const json::object& object, const char* field, double otherwise) {
  const auto* value = object.if_contains(field);
  return value ? value->to_number<double>() : otherwise;
}

void check_rope(const ModelConfig& config, const json::object& expected) {
  const std::map<std::string, RopeScaling::Kind> kinds = {{"none", RopeScaling::Kind::none},
                                                          {"linear", RopeScaling::Kind::linear},
                                                          {"llama3", RopeScaling::Kind::llama3},
                                                          {"yarn", RopeScaling::Kind::yarn}};
  const RopeScaling defaults;
  CHECK(config.rope.kind == kinds.at(expected.at("rope_kind").as_string().c_str()));
  CHECK(config.rope_theta == number(expected, "rope_theta", 0));
  CHECK(config.rope.factor == number(expected, "factor", defaults.factor));
  CHECK(config.rope.low_freq_factor == number(expected, "low_freq_factor", defaults.low_freq_factor));
  CHECK(config.rope.high_freq_factor == number(expected, "high_freq_factor", defaults.high_freq_factor));
  CHECK(config.rope.beta_fast == number(expected, "beta_fast", defaults.beta_fast));
  CHECK(config.rope.beta_slow == number(expected, "beta_slow", defaults.beta_slow));
  CHECK(config.rope.attention_factor ==
        doctest::Approx(number(expected, "attention_factor", 0)).epsilon(1e-12));
  CHECK(double(config.rope.original_context) == number(expected, "original_context", 0));
}

void check_tokens(const ModelConfig& config, const json::object& expected) {
  CHECK(config.has_bos_token == expected.at("bos").is_int64());
  if (config.has_bos_token) CHECK(config.bos_token == expected.at("bos").as_int64());
  CHECK(config.eos_tokens == json::value_to<std::vector<TokenId>>(expected.at("eos")));
}

void check_config(const ModelConfig& config, const json::object& expected) {
  const auto integer = [&](const char* field) { return expected.at(field).as_int64(); };
  const auto flag = [&](const char* field) { return expected.at(field).as_bool(); };
  const std::map<std::string, DType> dtypes = {
      {"bfloat16", DType::bf16}, {"float16", DType::f16}, {"float32", DType::f32}};
  CHECK(config.context == integer("context"));
  CHECK(config.layers == integer("layers"));
  CHECK(config.heads == integer("heads"));
  CHECK(config.kv_heads == integer("kv_heads"));
  CHECK(config.head_dim == integer("head_dim"));
  CHECK(config.sliding_window == integer("sliding_window"));
  CHECK(config.rms_norm_eps == number(expected, "rms_norm_eps", 0));
  CHECK(config.tied_embeddings == flag("tied"));
  CHECK(config.qkv_bias == flag("qkv_bias"));
  CHECK(config.output_bias == flag("output_bias"));
  CHECK(config.mlp_bias == flag("mlp_bias"));
  CHECK(config.qk_norm == flag("qk_norm"));
  CHECK(config.dtype == dtypes.at(expected.at("dtype").as_string().c_str()));
  check_rope(config, expected);
  check_tokens(config, expected);
}

}  // namespace

TEST_CASE("a configuration means what transformers takes it to mean") {
  const auto cases = json::parse(
      content_of(std::filesystem::path(SANGAM_SOURCE_DIR) / "tests/unit/storage/data/configs.json"));
  CHECK(cases.as_array().size() >= 20);
  for (const auto& one : cases.as_array()) {
    CAPTURE(std::string(one.at("name").as_string()));
    const auto config = parse_model_config(json::serialize(one.at("config")), "config.json");
    REQUIRE_MESSAGE(config, config.error().context);
    check_config(*config, one.at("expected").as_object());
    CHECK(config->vocab_size == one.at("config").at("vocab_size").as_int64());
    CHECK(config->hidden_size == one.at("config").at("hidden_size").as_int64());
    CHECK(config->intermediate_size == one.at("config").at("intermediate_size").as_int64());
  }
}

TEST_CASE("another architecture, activation or quantisation is refused by name") {
  check_refused(with(R"("model_type":"gemma2")"), {"model_type", "gemma2", "llama, mistral, qwen2, qwen3"});
  check_refused(R"({"vocab_size":5})", {"model_type", "missing"});
  check_refused(with(R"("hidden_act":"gelu")"), {"hidden_act", "gelu", "silu"});
  check_refused(with(R"("quantization_config":{"quant_method":"gptq"})"),
                {"quantization_config", "gptq", "bf16"});
}

TEST_CASE("the sizes that decide shapes must be stated") {
  for (const char* field :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"}) {
    check_refused(with("\"" + std::string(field) + "\":null"), {field, "missing"});
  }
}

TEST_CASE("a number outside of its limits is refused with field, value and limits") {
  check_refused(with(R"("hidden_size":0)"), {"hidden_size = 0", "from 1 to 1048576"});
  check_refused(with(R"("num_hidden_layers":-4)"), {"num_hidden_layers = -4"});
  check_refused(with(R"("num_hidden_layers":1025)"), {"num_hidden_layers = 1025", "1024"});
  check_refused(with(R"("vocab_size":16777217)"), {"vocab_size = 16777217", "16777216"});
  check_refused(with(R"("vocab_size":"512")"), {"vocab_size = \"512\"", "integer"});
  check_refused(with(R"("vocab_size":512.5)"), {"vocab_size", "integer"});
  check_refused(with(R"("vocab_size":18446744073709551615)"), {"vocab_size", "integer"});
  check_refused(with(R"("max_position_embeddings":0)"), {"max_position_embeddings = 0"});
  check_refused(with(R"("rms_norm_eps":-1e-6)"), {"rms_norm_eps"});
  check_refused(with(R"("rms_norm_eps":1)"), {"rms_norm_eps = 1"});
  check_refused(with(R"("rope_theta":0)"), {"rope_theta = 0"});
  check_refused(with(R"("rope_theta":1e999)"), {"rope_theta"});
  check_refused(with(R"("tie_word_embeddings":1)"), {"tie_word_embeddings = 1", "true or false"});
  check_refused(with(R"("torch_dtype":"float64")"), {"torch_dtype", "float64", "bfloat16"});
}

TEST_CASE("heads must divide, and a head must be even") {
  check_refused(with(R"("num_key_value_heads":3)"), {"num_key_value_heads = 3", "4 heads"});
  check_refused(with(R"("num_key_value_heads":8)"), {"num_key_value_heads = 8", "4 heads"});
  check_refused(with(R"("hidden_size":66)"), {"hidden_size = 66", "num_attention_heads = 4"});
  check_refused(with(R"("hidden_size":60)"), {"head_dim", "is 15", "even"});
  check_refused(with(R"("head_dim":7)"), {"head_dim = 7", "even"});
  CHECK(parse_model_config(with(R"("hidden_size":66,"head_dim":8)"), "c").value().head_dim == 8);
  CHECK(parse_model_config(with(R"("num_key_value_heads":2)"), "c").value().kv_heads == 2);
}

TEST_CASE("rotary settings that we cannot compute are refused by name") {
  const auto scaling = [](const char* fields) {
    return with(R"("rope_scaling":{)" + std::string(fields) + "}");
  };
  check_refused(scaling(R"("rope_type":"dynamic","factor":2)"),
                {"rope_scaling", "rope_type", "dynamic", "yarn"});
  check_refused(scaling(R"("type":"mrope")"), {"rope_scaling", "type", "mrope"});
  check_refused(scaling(R"("type":"linear")"), {"factor", "missing"});
  check_refused(scaling(R"("type":"linear","factor":0.5)"), {"factor = 5E-1"});
  check_refused(scaling(R"("rope_type":"llama3","factor":8,"low_freq_factor":1)"),
                {"high_freq_factor", "missing"});
  check_refused(scaling(R"("rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4)"),
                {"high_freq_factor = 4", "exceed"});
  check_refused(scaling(R"("rope_type":"yarn","factor":8,"truncate":false)"), {"truncate"});
  check_refused(scaling(R"("full_attention":{"rope_type":"default"})"), {"full_attention", "by layer"});
  check_refused(with(R"("rope_scaling":[1])"), {"rope_scaling", "object"});
  check_refused(with(R"("partial_rotary_factor":0.5)"), {"partial_rotary_factor"});
  check_refused(with(R"("rope_parameters":{"rope_type":"default","partial_rotary_factor":0.5})"),
                {"rope_parameters", "partial_rotary_factor"});
}

TEST_CASE("a window in some layers only is refused, and one as long as the context is none") {
  const std::string qwen = R"("model_type":"qwen2","num_key_value_heads":4,"use_sliding_window":true)";
  check_refused(with(qwen + R"(,"sliding_window":16,"max_window_layers":2)"),
                {"sliding_window = 16", "2 of 4"});
  check_refused(with(qwen + R"(,"sliding_window":16,"layer_types":["full_attention"])"),
                {"layer_types", "1 layers of 4"});
  check_refused(with(qwen + R"(,"sliding_window":16,"layer_types":["full_attention","x","x","x"])"),
                {"layer_types"});
  const auto window = [&](const std::string& fields) {
    return parse_model_config(with(qwen + fields), "c").value().sliding_window;
  };
  CHECK(window(R"(,"sliding_window":16,"max_window_layers":0)") == 16);
  CHECK(window(R"(,"sliding_window":32767,"max_window_layers":0)") == 32767);
  CHECK(window(R"(,"sliding_window":32768,"max_window_layers":2)") == 0);
  CHECK(window(R"(,"sliding_window":null,"max_window_layers":2)") == 0);
}

TEST_CASE("a beginning token beyond the vocabulary is refused, an end token beyond it is kept") {
  check_refused(with(R"("bos_token_id":512)"), {"bos_token_id = 512", "vocab_size = 512"});
  check_refused(with(R"("bos_token_id":-1)"), {"bos_token_id = -1"});
  check_refused(with(R"("eos_token_id":[2,"3"])"), {"eos_token_id", "integer"});
  CHECK(parse_model_config(with(R"("eos_token_id":[7,600,7])"), "c").value().eos_tokens ==
        std::vector<TokenId>{7, 600});
}

TEST_CASE("what is not JSON, not an object or not there is refused by file") {
  check_refused("", {"not valid JSON"});
  check_refused("{", {"not valid JSON"});
  check_refused("[]", {"not a JSON object"});
  check_refused("{} x", {"not valid JSON"});
  check_refused(std::string(100'000, '['), {"not valid JSON"});
  check_refused("version https://git-lfs.github.com/spec/v1\n", {"git lfs pull"});
  TemporaryFolder folder;
  CHECK(read_model_config(folder.path()).error().code == ErrorCode::not_found);
  folder.write("config.json", std::string(1'000'001, ' '));
  CHECK(has(read_model_config(folder.path()).error().context, "1000001 bytes, more than the 1000000"));
}

TEST_CASE("generation defaults are what the file states, and nothing without one") {
  TemporaryFolder folder;
  const auto none = read_generation_defaults(folder.path()).value();
  CHECK_FALSE(none.temperature);
  CHECK_FALSE(none.do_sample);
  CHECK(none.eos_tokens.empty());
  folder.write(
      "generation_config.json",
      R"({"temperature":0.6,"top_k":20,"top_p":0.95,"min_p":0.05,"repetition_penalty":1.05,"do_sample":true,)"
      R"("eos_token_id":[151645,151643],"max_new_tokens":2048,"transformers_version":"4.51.0"})");
  const auto stated = read_generation_defaults(folder.path()).value();
  CHECK(stated.temperature == 0.6);
  CHECK(stated.top_k == 20);
  CHECK(stated.top_p == 0.95);
  CHECK(stated.min_p == 0.05);
  CHECK(stated.repetition_penalty == 1.05);
  CHECK(stated.do_sample == true);
  CHECK(stated.max_new_tokens == 2048);
  CHECK(stated.eos_tokens == std::vector<TokenId>{151645, 151643});
  folder.write("generation_config.json", R"({"top_p":1.5})");
  const auto refused = read_generation_defaults(folder.path());
  CHECK(has(refused.error().context, "generation_config.json: top_p = 1.5E0: must be a number from 0 to 1"));
}
