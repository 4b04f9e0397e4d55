// The parameters of the four families, which differ only in biases and norms, and the judgement of a
// checkpoint.
#include "storage/checkpoint/tensor_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

namespace sangam {
namespace {

const std::string kEmbedding = "model.embed_tokens";
const std::string kHead = "lm_head";

/// Appends the parameters of the model, and keeps the first fault in their formats.
class ParameterWriter {
 public:
  explicit ParameterWriter(const TensorLookup& stored) : stored_(stored) {}

  void vector(const std::string& name, std::int64_t size) { all_.push_back({name, {size}}); }
  void linear(const std::string& prefix, const LinearSize& size, bool bias = false) {
    const auto parts = find_linear_parts(prefix, size, stored_);
    if (!parts) {
      if (!fault_) fault_ = parts.error();
      return;
    }
    for (const LinearPart& part : parts->all()) all_.push_back({part.name, part.shape, part.dtype});
    if (bias) vector(prefix + ".bias", size.rows);
  }
  [[nodiscard]] Result<std::vector<ExpectedTensor>> all() && {
    if (fault_) return *fault_;
    return std::move(all_);
  }

 private:
  const TensorLookup& stored_;
  std::vector<ExpectedTensor> all_;
  std::optional<Error> fault_;
};

void write_layer(ParameterWriter& write, const std::string& layer, const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t query = config.heads * config.head_dim;
  const std::int64_t key = config.kv_heads * config.head_dim;
  write.vector(layer + "input_layernorm.weight", hidden);
  write.linear(layer + "self_attn.q_proj", {query, hidden}, config.qkv_bias);
  write.linear(layer + "self_attn.k_proj", {key, hidden}, config.qkv_bias);
  write.linear(layer + "self_attn.v_proj", {key, hidden}, config.qkv_bias);
  write.linear(layer + "self_attn.o_proj", {hidden, query}, config.output_bias);
  if (config.qk_norm) {
    write.vector(layer + "self_attn.q_norm.weight", config.head_dim);
    write.vector(layer + "self_attn.k_norm.weight", config.head_dim);
  }
  write.vector(layer + "post_attention_layernorm.weight", hidden);
  write.linear(layer + "mlp.gate_proj", {config.intermediate_size, hidden}, config.mlp_bias);
  write.linear(layer + "mlp.up_proj", {config.intermediate_size, hidden}, config.mlp_bias);
  write.linear(layer + "mlp.down_proj", {hidden, config.intermediate_size}, config.mlp_bias);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Error wrong(const Checkpoint& checkpoint, const std::string& what) {
  return make_error(ErrorCode::invalid_input,
                    fmt::format("{}: {}; config.json and weights must be of one model",
                                checkpoint.folder().string(), what));
}

Error missing(const ExpectedTensor& first, std::size_t count, std::size_t expected,
              const Checkpoint& checkpoint) {
  const std::string others = count > 1 ? fmt::format(" (and {} more of {})", count - 1, expected) : "";
  const std::string tied =
      first.name == kHead + ".weight"
          ? "; if the embedding serves as head, config.json must say tie_word_embeddings = true"
          : "";
  return wrong(checkpoint, fmt::format("tensor '{}' of shape {} is missing{}{}", first.name,
                                       shape_text(first.shape), others, tied));
}

/// Older exports keep the rotary frequencies, which follow from the configuration.
bool is_derived(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

bool equal(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

/// The tensors of the head, as far as the checkpoint has one that fits together.
std::vector<LinearPart> head_of(const ModelConfig& config, const Checkpoint& checkpoint) {
  const auto head = find_linear_parts(kHead, {config.vocab_size, config.hidden_size}, lookup_in(checkpoint));
  return head && checkpoint.contains(head->canonical.name) ? head->all() : std::vector<LinearPart>();
}

/// Whether there is a head beside the embedding that is not a copy of it.
bool head_differs(const ModelConfig& config, const Checkpoint& checkpoint) {
  const std::vector<LinearPart> head = head_of(config, checkpoint);
  const auto embedding =
      find_linear_parts(kEmbedding, {config.vocab_size, config.hidden_size}, lookup_in(checkpoint));
  if (head.empty() || !embedding || !checkpoint.contains(embedding->canonical.name)) return false;
  return !std::ranges::equal(head, embedding->all(), [&](const LinearPart& a, const LinearPart& b) {
    return a.name.substr(kHead.size()) == b.name.substr(kEmbedding.size()) &&
           equal(checkpoint.tensors().at(a.name), checkpoint.tensors().at(b.name));
  });
}

}  // namespace

Result<std::vector<ExpectedTensor>> expected_tensors(const ModelConfig& config, const TensorLookup& stored) {
  ParameterWriter write(stored);
  write.linear(kEmbedding, {config.vocab_size, config.hidden_size, true});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    write_layer(write, "model.layers." + std::to_string(layer) + ".", config);
  }
  write.vector("model.norm.weight", config.hidden_size);
  if (!config.tied_embeddings) write.linear(kHead, {config.vocab_size, config.hidden_size});
  return std::move(write).all();
}

std::string fault_of(const ExpectedTensor& want, DType dtype, const std::vector<std::int64_t>& shape) {
  if (shape != want.shape) {
    return fmt::format("tensor '{}' has shape {}, but config.json implies {}", want.name, shape_text(shape),
                       shape_text(want.shape));
  }
  if (has_type(want.dtype, dtype)) return {};
  if (want.dtype) {
    return fmt::format("tensor '{}' has dtype {}; it must be {}", want.name, name_of(dtype), name_of(*want.dtype));
  }
  return fmt::format("tensor '{}' has dtype {}; weights are BF16, F16 or F32 (quantised?)", want.name, name_of(dtype));
}

TensorLookup lookup_in(const Checkpoint& checkpoint) {
  return [&checkpoint](std::string_view name) -> std::optional<TensorView> {
    const auto found = checkpoint.tensors().find(name);
    return found == checkpoint.tensors().end() ? std::nullopt : std::optional(found->second);
  };
}

Result<TensorReport> check_tensors(const ModelConfig& config, const Checkpoint& checkpoint) {
  TensorReport report{config.tied_embeddings, {}};
  ModelConfig in_effect = config;
  if (config.tied_embeddings && head_differs(config, checkpoint)) {
    in_effect.tied_embeddings = report.tied_embeddings = false;
    report.warnings.push_back(fmt::format("{}: {}.weight differs from {}.weight although config.json ties them; using both",
                                          checkpoint.folder().string(), kHead, kEmbedding));
  }
  const auto expected = expected_tensors(in_effect, lookup_in(checkpoint));
  if (!expected) return wrong(checkpoint, expected.error().context);
  std::set<std::string, std::less<>> known;
  if (in_effect.tied_embeddings) {  // A copy of the embedding, so nothing is lost.
    for (const LinearPart& part : head_of(config, checkpoint)) known.insert(part.name);
  }
  const ExpectedTensor* first_missing = nullptr;
  std::size_t missing_count = 0;
  for (const ExpectedTensor& want : *expected) {
    known.insert(want.name);
    const auto have = checkpoint.tensors().find(want.name);
    if (have == checkpoint.tensors().end()) {
      if (missing_count++ == 0) first_missing = &want;
    } else if (const std::string fault = fault_of(want, have->second.dtype, have->second.shape); !fault.empty()) {
      return wrong(checkpoint, fault);
    }
  }
  if (first_missing) return missing(*first_missing, missing_count, expected->size(), checkpoint);
  for (const auto& [name, view] : checkpoint.tensors())
    if (!known.contains(name) && !is_derived(name))
      report.warnings.push_back(
          fmt::format("{}: tensor '{}' of shape {} is not a parameter of this model; ignored",
                      checkpoint.folder().string(), name, shape_text(view.shape)));
  return report;
}

}  // namespace sangam
