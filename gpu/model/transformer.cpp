// The forward pass of Llama, Mistral, Qwen2 and Qwen3: they differ only in which biases and norms are
// present.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpu/kernels/ops.hpp"
#include "gpu/model/model.hpp"
#include "gpu/model/rotary.hpp"
#include "gpu/model/weights.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

const float* or_null(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

/// The activations of a step, one allocation that grows by at least half and never shrinks.
class Workspace {
 public:
  void fit(const ModelConfig& c, std::int64_t rows) {
    const std::int64_t widths[] = {c.hidden_size,           c.hidden_size,           c.heads * c.head_dim,
                                   c.kv_heads * c.head_dim, c.kv_heads * c.head_dim, c.heads * c.head_dim,
                                   c.intermediate_size,     c.intermediate_size,     c.head_dim / 2,
                                   c.head_dim / 2};
    float** const places[] = {&stream, &normed, &q, &k, &v, &attended, &gate, &up, &cosine, &sine};
    std::int64_t width = 0;
    for (const std::int64_t w : widths) width += w;
    if (rows > capacity_) {
      capacity_ = std::max(rows, capacity_ * 3 / 2);
      floats_ = std::vector<float>(std::size_t(width * capacity_));
    }
    float* next = floats_.data();
    for (std::size_t i = 0; i < std::size(widths); ++i) {
      *places[i] = next;
      next += widths[i] * capacity_;
    }
  }

  float* stream = nullptr;    // (rows, hidden): the residual stream
  float* normed = nullptr;    // (rows, hidden)
  float* q = nullptr;         // (rows, heads, head_dim)
  float* k = nullptr;         // (rows, kv_heads, head_dim)
  float* v = nullptr;         // (rows, kv_heads, head_dim)
  float* attended = nullptr;  // (rows, heads, head_dim)
  float* gate = nullptr;      // (rows, intermediate)
  float* up = nullptr;        // (rows, intermediate)
  float* cosine = nullptr;    // (rows, head_dim / 2)
  float* sine = nullptr;      // (rows, head_dim / 2)

 private:
  std::int64_t capacity_ = 0;
  std::vector<float> floats_;
};

class Transformer final : public Model {
 public:
  Transformer(const ModelConfig& config, ModelWeights weights, Ops& ops)
      : config_(config), weights_(std::move(weights)), rotary_(config), ops_(ops) {}

  [[nodiscard]] const ModelConfig& config() const override { return config_; }
  [[nodiscard]] std::size_t kv_bytes_per_token() const override { return layout(1).bytes_per_token(); }
  [[nodiscard]] std::int64_t tokens_per_page(std::size_t page_bytes) const override {
    return std::int64_t(page_bytes / kv_bytes_per_token());
  }
  void forward(std::span<const SequenceSlice> slices, PageArena arena, std::span<float> logits,
               const LayerDone& layer_done) override;

 private:
  [[nodiscard]] KvLayout layout(std::int64_t tokens_per_page) const {
    return {config_.layers, config_.kv_heads, config_.head_dim, tokens_per_page};
  }
  [[nodiscard]] float epsilon() const { return float(config_.rms_norm_eps); }

  void begin(std::span<const SequenceSlice> slices);
  void project_heads(const LayerWeights& w);
  void keep_last_rows(std::span<const SequenceSlice> slices);
  void attend(const LayerWeights& w, const KvLayer& kv);
  void feed_forward(const LayerWeights& w);
  void write_logits(std::span<float> logits);

  ModelConfig config_;
  ModelWeights weights_;
  Rotary rotary_;
  Ops& ops_;

  // Of the step under way.
  Workspace space_;
  std::int64_t rows_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<KvRows> sequences_;
};

void Transformer::forward(std::span<const SequenceSlice> slices, PageArena arena, std::span<float> logits,
                          const LayerDone& layer_done) {
  begin(slices);
  KvLayer kv{arena, layout(tokens_per_page(arena.page_bytes)), 0, sequences_};
  SANGAM_ASSERT(kv.layout.tokens_per_page > 0, arena.page_bytes, kv_bytes_per_token());
  ops_.embed(weights_.embedding, tokens_, space_.stream);
  for (const LayerWeights& layer : weights_.layers) {
    project_heads(layer);
    ops_.store_kv(kv, space_.k, space_.v);
    if (layer_done) layer_done(kv.layer);
    if (&layer == &weights_.layers.back()) {
      keep_last_rows(slices);
      kv.sequences = sequences_;
    }
    attend(layer, kv);
    feed_forward(layer);
    ++kv.layer;
  }
  write_logits(logits);
}

void Transformer::begin(std::span<const SequenceSlice> slices) {
  tokens_.clear();
  sequences_.clear();
  for (const SequenceSlice& slice : slices) {
    SANGAM_ASSERT(!slice.tokens.empty() && slice.position >= 0, slice.tokens.size(), slice.position);
    tokens_.insert(tokens_.end(), slice.tokens.begin(), slice.tokens.end());
    sequences_.push_back({slice.position, std::int64_t(slice.tokens.size()), slice.pages});
  }
  rows_ = std::int64_t(tokens_.size());
  space_.fit(config_, rows_);
  std::int64_t angle = 0;
  for (const KvRows& sequence : sequences_) {
    for (std::int64_t i = 0; i < sequence.count; ++i, angle += config_.head_dim / 2) {
      rotary_.turn(sequence.position + i, space_.cosine + angle, space_.sine + angle);
    }
  }
}

/// q, k and v of all rows, normed (Qwen3) and turned to their positions.
void Transformer::project_heads(const LayerWeights& w) {
  ops_.rms_norm({space_.stream, rows_, config_.hidden_size}, w.attention_norm.data(), epsilon(),
                space_.normed);
  const Projection projections[] = {{&w.q, or_null(w.q_bias), space_.q, false},
                                    {&w.k, or_null(w.k_bias), space_.k, false},
                                    {&w.v, or_null(w.v_bias), space_.v, false}};
  ops_.linear({space_.normed, rows_, config_.hidden_size}, projections);
  const Rows q{space_.q, rows_ * config_.heads, config_.head_dim};
  const Rows k{space_.k, rows_ * config_.kv_heads, config_.head_dim};
  if (!w.q_norm.empty()) ops_.rms_norm(q, w.q_norm.data(), epsilon(), space_.q);
  if (!w.k_norm.empty()) ops_.rms_norm(k, w.k_norm.data(), epsilon(), space_.k);
  const Rotation rotation{space_.cosine, space_.sine, config_.head_dim};
  ops_.rotate(space_.q, rows_, config_.heads, rotation);
  ops_.rotate(space_.k, rows_, config_.kv_heads, rotation);
}

/// Behind the last layer's keys and values only the rows that become logits matter: the others are dropped.
void Transformer::keep_last_rows(std::span<const SequenceSlice> slices) {
  const std::int64_t q_width = config_.heads * config_.head_dim;
  std::int64_t kept = 0;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    last += sequences_[i].count;
    if (!slices[i].wants_logits) continue;
    std::copy_n(space_.q + last * q_width, q_width, space_.q + kept * q_width);
    std::copy_n(space_.stream + last * config_.hidden_size, config_.hidden_size,
                space_.stream + kept * config_.hidden_size);
    const KvRows& all = sequences_[i];
    sequences_[std::size_t(kept)] = {all.position + all.count - 1, 1, all.pages};
    ++kept;
  }
  sequences_.resize(std::size_t(kept));
  rows_ = kept;
}

void Transformer::attend(const LayerWeights& w, const KvLayer& kv) {
  const AttentionShape shape{config_.heads, 1.0f / std::sqrt(float(config_.head_dim)),
                             config_.sliding_window};
  ops_.attention(kv, shape, space_.q, space_.attended);
  const Projection output[] = {{&w.o, or_null(w.o_bias), space_.stream, true}};
  ops_.linear({space_.attended, rows_, config_.heads * config_.head_dim}, output);
}

void Transformer::feed_forward(const LayerWeights& w) {
  ops_.rms_norm({space_.stream, rows_, config_.hidden_size}, w.mlp_norm.data(), epsilon(), space_.normed);
  const Projection inputs[] = {{&w.gate, or_null(w.gate_bias), space_.gate, false},
                               {&w.up, or_null(w.up_bias), space_.up, false}};
  ops_.linear({space_.normed, rows_, config_.hidden_size}, inputs);
  ops_.swiglu(space_.gate, space_.up, rows_ * config_.intermediate_size);
  const Projection output[] = {{&w.down, or_null(w.down_bias), space_.stream, true}};
  ops_.linear({space_.gate, rows_, config_.intermediate_size}, output);
}

void Transformer::write_logits(std::span<float> logits) {
  SANGAM_ASSERT(logits.size() >= std::size_t(rows_ * config_.vocab_size), logits.size(), rows_,
                config_.vocab_size);
  ops_.rms_norm({space_.stream, rows_, config_.hidden_size}, weights_.norm.data(), epsilon(), space_.normed);
  const Projection head[] = {{&weights_.head, nullptr, logits.data(), false}};
  ops_.linear({space_.normed, rows_, config_.hidden_size}, head);
}

/// What no tensor's shape would show.
std::string fault_of(const ModelConfig& c) {
  for (const std::int64_t extent :
       {c.vocab_size, c.hidden_size, c.intermediate_size, c.layers, c.heads, c.kv_heads, c.head_dim}) {
    if (extent <= 0) return "a size of the model is missing or not positive";
  }
  if (c.heads % c.kv_heads != 0) {
    return "heads=" + std::to_string(c.heads) +
           " is not a multiple of kv_heads=" + std::to_string(c.kv_heads);
  }
  if (c.head_dim % 2 != 0) return "head_dim=" + std::to_string(c.head_dim) + " is odd and cannot be rotated";
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> Model::create(const ModelConfig& config, const SlotLookup& slots, Ops& ops) {
  if (const std::string fault = fault_of(config); !fault.empty()) {
    return make_error(ErrorCode::invalid_input, "model configuration: " + fault);
  }
  Result<ModelWeights> weights = resolve_weights(config, slots);
  if (!weights) return weights.error();
  return std::unique_ptr<Model>(new Transformer(config, std::move(*weights), ops));
}

}  // namespace sangam
