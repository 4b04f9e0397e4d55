// safetensors: the header's length in eight bytes, a JSON header, then the tensors one behind the other.
#include "bench/engine/write_checkpoint.hpp"

#include <fstream>
#include <sstream>
#include <system_error>

namespace sangam {
namespace {

struct Family {
  const char* model_type;
  const char* architecture;
};

Family family_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::llama:
      return {"llama", "LlamaForCausalLM"};
    case Architecture::mistral:
      return {"mistral", "MistralForCausalLM"};
    case Architecture::qwen2:
      return {"qwen2", "Qwen2ForCausalLM"};
    case Architecture::qwen3:
      return {"qwen3", "Qwen3ForCausalLM"};
  }
  return {};
}

std::string config_text(const ModelConfig& c) {
  const Family family = family_of(c.architecture);
  std::ostringstream text;
  text << "{\"architectures\": [\"" << family.architecture << "\"], \"model_type\": \"" << family.model_type
       << "\", \"vocab_size\": " << c.vocab_size << ", \"hidden_size\": " << c.hidden_size
       << ", \"intermediate_size\": " << c.intermediate_size << ", \"num_hidden_layers\": " << c.layers
       << ", \"num_attention_heads\": " << c.heads << ", \"num_key_value_heads\": " << c.kv_heads
       << ", \"head_dim\": " << c.head_dim << ", \"max_position_embeddings\": " << c.context
       << ", \"rms_norm_eps\": " << c.rms_norm_eps << ", \"rope_theta\": " << c.rope_theta
       << ", \"hidden_act\": \"silu\", \"tie_word_embeddings\": " << (c.tied_embeddings ? "true" : "false")
       << ", \"eos_token_id\": 0, \"torch_dtype\": \"bfloat16\"}\n";
  return text.str();
}

std::string header_text(const RandomModel& model) {
  std::ostringstream text;
  std::size_t at = 0;
  for (const auto& [name, tensor] : model.tensors()) {
    text << (at == 0 ? "{" : ",") << '"' << name << "\":{\"dtype\":\"BF16\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) text << (i == 0 ? "" : ",") << tensor.shape[i];
    text << "],\"data_offsets\":[" << at << ',' << at + tensor.bytes.size() << "]}";
    at += tensor.bytes.size();
  }
  std::string header = text.str() + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

}  // namespace

Result<void> write_checkpoint(const RandomModel& model, const std::filesystem::path& folder) {
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  std::ofstream(folder / "config.json") << config_text(model.config());
  std::ofstream file(folder / "model.safetensors", std::ios::binary);
  const std::string header = header_text(model);
  const std::uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), sizeof length) << header;
  for (const auto& [name, tensor] : model.tensors()) {
    file.write(reinterpret_cast<const char*>(tensor.bytes.data()), std::streamsize(tensor.bytes.size()));
  }
  file.close();
  if (file) return {};
  return make_error(ErrorCode::exhausted, folder.string() + ": cannot write " +
                                              std::to_string(model.bytes()) +
                                              " bytes of weights; check space and permissions");
}

}  // namespace sangam
