// The parameters of the four families, which differ only in biases and norms, and the judgement of a
// checkpoint.
#include "storage/checkpoint/tensor_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

namespace sangam {
namespace {

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

/// Appends the parameters of one layer.
class LayerWriter {
 public:
  LayerWriter(std::vector<ExpectedTensor>& out, std::int64_t layer)
      : out_(out), prefix_("model.layers." + std::to_string(layer) + ".") {}

  void vector(const std::string& name, std::int64_t size) { out_.push_back({prefix_ + name, {size}}); }
  void linear(const std::string& name, std::int64_t rows, std::int64_t columns, bool bias) {
    out_.push_back({prefix_ + name + ".weight", {rows, columns}});
    if (bias) vector(name + ".bias", rows);
  }

 private:
  std::vector<ExpectedTensor>& out_;
  std::string prefix_;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool is_weight_type(DType type) {
  return type == DType::bf16 || type == DType::f16 || type == DType::f32;
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
      first.name == kHead
          ? "; if the embedding serves as head, config.json must say tie_word_embeddings = true"
          : "";
  return wrong(checkpoint, fmt::format("tensor '{}' of shape {} is missing{}{}", first.name,
                                       shape_text(first.shape), others, tied));
}

std::optional<Error> fault_of(const ExpectedTensor& want, const TensorView& have,
                              const Checkpoint& checkpoint) {
  if (have.shape != want.shape)
    return wrong(checkpoint, fmt::format("tensor '{}' has shape {}, but config.json implies {}", want.name,
                                         shape_text(have.shape), shape_text(want.shape)));
  if (!is_weight_type(have.dtype))
    return wrong(checkpoint,
                 fmt::format("tensor '{}' has dtype {}; weights are BF16, F16 or F32 (quantised?)", want.name,
                             name_of(have.dtype)));
  return std::nullopt;
}

/// Older exports keep the rotary frequencies, which follow from the configuration.
bool is_derived(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq");
}

/// Whether the head, where both are there, may share the embedding's bytes.
bool head_equals_embedding(const Checkpoint& checkpoint) {
  const auto embedding = checkpoint.tensor(kEmbedding);
  const auto head = checkpoint.tensor(kHead);
  return embedding && head && embedding->dtype == head->dtype && embedding->shape == head->shape &&
         std::ranges::equal(embedding->bytes, head->bytes);
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t query = config.heads * config.head_dim;
  const std::int64_t key = config.kv_heads * config.head_dim;
  std::vector<ExpectedTensor> all = {{kEmbedding, {config.vocab_size, hidden}}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    LayerWriter write(all, layer);
    write.vector("input_layernorm.weight", hidden);
    write.linear("self_attn.q_proj", query, hidden, config.qkv_bias);
    write.linear("self_attn.k_proj", key, hidden, config.qkv_bias);
    write.linear("self_attn.v_proj", key, hidden, config.qkv_bias);
    write.linear("self_attn.o_proj", hidden, query, config.output_bias);
    if (config.qk_norm) {
      write.vector("self_attn.q_norm.weight", config.head_dim);
      write.vector("self_attn.k_norm.weight", config.head_dim);
    }
    write.vector("post_attention_layernorm.weight", hidden);
    write.linear("mlp.gate_proj", config.intermediate_size, hidden, config.mlp_bias);
    write.linear("mlp.up_proj", config.intermediate_size, hidden, config.mlp_bias);
    write.linear("mlp.down_proj", hidden, config.intermediate_size, config.mlp_bias);
  }
  all.push_back({"model.norm.weight", {hidden}});
  if (!config.tied_embeddings) all.push_back({kHead, {config.vocab_size, hidden}});
  return all;
}

Result<TensorReport> check_tensors(const ModelConfig& config, const Checkpoint& checkpoint) {
  TensorReport report{config.tied_embeddings, {}};
  ModelConfig in_effect = config;
  if (config.tied_embeddings && checkpoint.contains(kHead) && checkpoint.contains(kEmbedding) &&
      !head_equals_embedding(checkpoint)) {
    in_effect.tied_embeddings = report.tied_embeddings = false;
    report.warnings.push_back(fmt::format("{}: {} differs from {} although config.json ties them; using both",
                                          checkpoint.folder().string(), kHead, kEmbedding));
  }
  const auto expected = expected_tensors(in_effect);
  std::set<std::string_view> known;
  if (in_effect.tied_embeddings) known.insert(kHead);  // a copy of the embedding, so nothing is lost
  const ExpectedTensor* first_missing = nullptr;
  std::size_t missing_count = 0;
  for (const ExpectedTensor& want : expected) {
    known.insert(want.name);
    const auto have = checkpoint.tensors().find(want.name);
    if (have == checkpoint.tensors().end()) {
      if (missing_count++ == 0) first_missing = &want;
    } else if (auto fault = fault_of(want, have->second, checkpoint)) {
      return *fault;
    }
  }
  if (first_missing) return missing(*first_missing, missing_count, expected.size(), checkpoint);
  for (const auto& [name, view] : checkpoint.tensors())
    if (!known.contains(name) && !is_derived(name))
      report.warnings.push_back(
          fmt::format("{}: tensor '{}' of shape {} is not a parameter of this model; ignored",
                      checkpoint.folder().string(), name, shape_text(view.shape)));
  return report;
}

}  // namespace sangam
