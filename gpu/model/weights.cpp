// Looks slots up one by one and remembers the first fault, so that the list of slots reads as a list.
#include "gpu/model/weights.hpp"

#include <cstring>
#include <optional>
#include <string>

namespace sangam {
namespace {

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + ")";
}

float widened(const std::byte* element, DType dtype) {
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  std::uint16_t raw = 0;
  std::memcpy(&raw, element, sizeof raw);
  const std::uint32_t sign = std::uint32_t(raw & 0x8000u) << 16;
  const std::uint32_t magnitude = raw & 0x7fffu;
  if (dtype == DType::bf16) return std::bit_cast<float>(std::uint32_t(raw) << 16);
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  // A half's exponent bias is 112 less than a float's.
  return std::bit_cast<float>(sign |
                              std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f));
}

class Resolver {
 public:
  explicit Resolver(const SlotLookup& slots) : slots_(slots) {}

  Matrix matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    const std::optional<TensorView> tensor = find(name, {rows, columns});
    return tensor ? Matrix{tensor->bytes.data(), tensor->dtype, rows, columns} : Matrix{};
  }

  /// Absent, and not looked for, where `wanted` is false.
  std::vector<float> vector(const std::string& name, std::int64_t size, bool wanted = true) {
    std::vector<float> values;
    if (!wanted) return values;
    const std::optional<TensorView> tensor = find(name, {size});
    if (!tensor) return values;
    const std::size_t step = bytes_of(tensor->dtype);
    for (std::int64_t i = 0; i < size; ++i) {
      values.push_back(widened(tensor->bytes.data() + std::size_t(i) * step, tensor->dtype));
    }
    return values;
  }

  /// Slots that read one input are computed together.
  void same_type(const Matrix& a, const Matrix& b, const std::string& names) {
    if (a.bytes != nullptr && b.bytes != nullptr && a.dtype != b.dtype)
      fail(names + ": stored in different types");
  }

  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }

 private:
  std::optional<TensorView> find(const std::string& name, const std::vector<std::int64_t>& shape) {
    Result<TensorView> tensor = slots_(name);
    if (!tensor) {
      if (!fault_) fault_ = tensor.error();
      return std::nullopt;
    }
    if (tensor->shape != shape) {
      return fail(name + ": shape is " + text_of(tensor->shape) + ", the configuration asks for " +
                  text_of(shape));
    }
    if (tensor->dtype != DType::bf16 && tensor->dtype != DType::f16 && tensor->dtype != DType::f32) {
      return fail(name + ": stored in a type that cannot be computed with; use bf16, f16 or f32");
    }
    std::size_t bytes = bytes_of(tensor->dtype);
    for (const std::int64_t extent : shape) bytes *= std::size_t(extent);
    if (tensor->bytes.size() != bytes) {
      return fail(name + ": has " + std::to_string(tensor->bytes.size()) + " bytes, its shape needs " +
                  std::to_string(bytes));
    }
    return *tensor;
  }

  std::nullopt_t fail(std::string context) {
    if (!fault_) fault_ = make_error(ErrorCode::invalid_input, std::move(context));
    return std::nullopt;
  }

  const SlotLookup& slots_;
  std::optional<Error> fault_;
};

LayerWeights resolve_layer(const ModelConfig& c, std::int64_t index, Resolver& find) {
  const std::string layer = "model.layers." + std::to_string(index) + ".";
  const std::string attention = layer + "self_attn.";
  const std::string mlp = layer + "mlp.";
  const std::int64_t q_width = c.heads * c.head_dim;
  const std::int64_t kv_width = c.kv_heads * c.head_dim;
  LayerWeights w;
  w.attention_norm = find.vector(layer + "input_layernorm.weight", c.hidden_size);
  w.q = find.matrix(attention + "q_proj.weight", q_width, c.hidden_size);
  w.k = find.matrix(attention + "k_proj.weight", kv_width, c.hidden_size);
  w.v = find.matrix(attention + "v_proj.weight", kv_width, c.hidden_size);
  w.o = find.matrix(attention + "o_proj.weight", c.hidden_size, q_width);
  w.q_bias = find.vector(attention + "q_proj.bias", q_width, c.qkv_bias);
  w.k_bias = find.vector(attention + "k_proj.bias", kv_width, c.qkv_bias);
  w.v_bias = find.vector(attention + "v_proj.bias", kv_width, c.qkv_bias);
  w.o_bias = find.vector(attention + "o_proj.bias", c.hidden_size, c.output_bias);
  w.q_norm = find.vector(attention + "q_norm.weight", c.head_dim, c.qk_norm);
  w.k_norm = find.vector(attention + "k_norm.weight", c.head_dim, c.qk_norm);
  w.mlp_norm = find.vector(layer + "post_attention_layernorm.weight", c.hidden_size);
  w.gate = find.matrix(mlp + "gate_proj.weight", c.intermediate_size, c.hidden_size);
  w.up = find.matrix(mlp + "up_proj.weight", c.intermediate_size, c.hidden_size);
  w.down = find.matrix(mlp + "down_proj.weight", c.hidden_size, c.intermediate_size);
  w.gate_bias = find.vector(mlp + "gate_proj.bias", c.intermediate_size, c.mlp_bias);
  w.up_bias = find.vector(mlp + "up_proj.bias", c.intermediate_size, c.mlp_bias);
  w.down_bias = find.vector(mlp + "down_proj.bias", c.hidden_size, c.mlp_bias);
  find.same_type(w.q, w.k, attention + "q_proj.weight and k_proj.weight");
  find.same_type(w.q, w.v, attention + "q_proj.weight and v_proj.weight");
  find.same_type(w.gate, w.up, mlp + "gate_proj.weight and up_proj.weight");
  return w;
}

}  // namespace

Result<ModelWeights> resolve_weights(const ModelConfig& config, const SlotLookup& slots) {
  Resolver find(slots);
  ModelWeights weights;
  weights.embedding = find.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
  for (std::int64_t i = 0; i < config.layers && !find.fault(); ++i) {
    weights.layers.push_back(resolve_layer(config, i, find));
  }
  weights.norm = find.vector("model.norm.weight", config.hidden_size);
  weights.head = config.tied_embeddings
                     ? weights.embedding
                     : find.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
  if (find.fault()) return *find.fault();
  return weights;
}

}  // namespace sangam
