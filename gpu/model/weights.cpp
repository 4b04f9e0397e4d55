// Looks slots up one by one and remembers the first fault, so that the list of slots reads as a list.
#include "gpu/model/weights.hpp"

#include <optional>
#include <string>

#include "storage/checkpoint/widened.hpp"
#include "storage/coding/linear_parts.hpp"

namespace sangam {
namespace {

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + ")";
}

class Resolver {
 public:
  explicit Resolver(const SlotLookup& slots) : slots_(slots) {}

  /// `prefix` is the tensors' name but for the part that says which part of the map they are.
  Linear linear(const std::string& prefix, const LinearSize& size) {
    const auto lookup = [this](std::string_view name) -> std::optional<TensorView> {
      Result<TensorView> tensor = slots_(name);
      return tensor ? std::optional(std::move(*tensor)) : std::nullopt;
    };
    const Result<LinearParts> parts = find_linear_parts(prefix, size, lookup);
    if (!parts) {
      fail(parts.error().context);
      return {};
    }
    return {.canonical = matrix(parts->canonical, size.columns),
            .delta = matrix(parts->delta, size.columns),
            .scale = rows(parts->row_scale),
            .shift = rows(parts->row_shift),
            .down = matrix(parts->down, size.columns),
            .up = matrix(parts->up, size.columns)};
  }

  /// Absent, and not looked for, where `wanted` is false.
  std::vector<float> vector(const std::string& name, std::int64_t size, bool wanted = true) {
    return wanted ? rows({name, {size}}) : std::vector<float>();
  }

  [[nodiscard]] const std::optional<Error>& fault() const { return fault_; }

 private:
  std::vector<float> rows(const LinearPart& part) {
    std::vector<float> values;
    if (!part.exists()) return values;
    const std::optional<TensorView> tensor = find(part);
    if (!tensor) return values;
    const std::size_t step = bytes_of(tensor->dtype);
    for (std::int64_t i = 0; i < part.shape.front(); ++i) {
      values.push_back(widened(tensor->bytes.data() + std::size_t(i) * step, tensor->dtype));
    }
    return values;
  }

  /// The shape of a coded matrix does not tell its `columns`.
  Matrix matrix(const LinearPart& part, std::int64_t columns) {
    if (!part.exists()) return {};
    const std::optional<TensorView> tensor = find(part);
    if (!tensor) return {};
    return {tensor->bytes.data(), tensor->dtype, part.shape.front(), part.code ? columns : part.shape.back(),
            part.code};
  }

  std::optional<TensorView> find(const LinearPart& part) {
    const auto& [name, shape, dtype, code] = part;
    Result<TensorView> tensor = slots_(name);
    if (!tensor) {
      if (!fault_) fault_ = tensor.error();
      return std::nullopt;
    }
    if (tensor->shape != shape) {
      return fail(name + ": shape is " + text_of(tensor->shape) + ", the configuration asks for " +
                  text_of(shape));
    }
    if (!has_type(dtype, tensor->dtype)) {
      return fail(name + ": stored as " + std::string(name_of(tensor->dtype)) + "; use " +
                  (dtype ? std::string(name_of(*dtype)) : "BF16, F16 or F32"));
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
  w.q = find.linear(attention + "q_proj", {q_width, c.hidden_size});
  w.k = find.linear(attention + "k_proj", {kv_width, c.hidden_size});
  w.v = find.linear(attention + "v_proj", {kv_width, c.hidden_size});
  w.o = find.linear(attention + "o_proj", {c.hidden_size, q_width});
  w.q_bias = find.vector(attention + "q_proj.bias", q_width, c.qkv_bias);
  w.k_bias = find.vector(attention + "k_proj.bias", kv_width, c.qkv_bias);
  w.v_bias = find.vector(attention + "v_proj.bias", kv_width, c.qkv_bias);
  w.o_bias = find.vector(attention + "o_proj.bias", c.hidden_size, c.output_bias);
  w.q_norm = find.vector(attention + "q_norm.weight", c.head_dim, c.qk_norm);
  w.k_norm = find.vector(attention + "k_norm.weight", c.head_dim, c.qk_norm);
  w.mlp_norm = find.vector(layer + "post_attention_layernorm.weight", c.hidden_size);
  w.gate = find.linear(mlp + "gate_proj", {c.intermediate_size, c.hidden_size});
  w.up = find.linear(mlp + "up_proj", {c.intermediate_size, c.hidden_size});
  w.down = find.linear(mlp + "down_proj", {c.hidden_size, c.intermediate_size});
  w.gate_bias = find.vector(mlp + "gate_proj.bias", c.intermediate_size, c.mlp_bias);
  w.up_bias = find.vector(mlp + "up_proj.bias", c.intermediate_size, c.mlp_bias);
  w.down_bias = find.vector(mlp + "down_proj.bias", c.hidden_size, c.mlp_bias);
  return w;
}

}  // namespace

Result<ModelWeights> resolve_weights(const ModelConfig& config, const SlotLookup& slots) {
  Resolver find(slots);
  ModelWeights weights;
  weights.embedding = find.linear("model.embed_tokens", {config.vocab_size, config.hidden_size, true});
  for (std::int64_t i = 0; i < config.layers && !find.fault(); ++i) {
    weights.layers.push_back(resolve_layer(config, i, find));
  }
  weights.norm = find.vector("model.norm.weight", config.hidden_size);
  weights.head = config.tied_embeddings
                     ? weights.embedding
                     : find.linear("lm_head", {config.vocab_size, config.hidden_size});
  if (find.fault()) return *find.fault();
  return weights;
}

}  // namespace sangam
