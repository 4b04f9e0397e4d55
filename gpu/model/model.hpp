// One decoder-only transformer over named weight slots and paged KV: a step of rows in, logits out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "gpu/kernels/paged_kv.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/model_config.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam {

class Ops;

/// The rows of one sequence in one step.
struct SequenceSlice {
  std::span<const TokenId> tokens;  ///< New tokens; their K and V are written by the step.
  std::int64_t position = 0;        ///< Of tokens[0]; all earlier positions are already in the pages.
  std::span<const PageId>
      pages;                  ///< Page i holds positions [i * tokens_per_page, (i + 1) * tokens_per_page).
  bool wants_logits = false;  ///< For the last of `tokens`.
};

/// Finds a weight by its HF tensor name ("model.layers.0.mlp.up_proj.weight"); the bytes outlive the model.
using SlotLookup = std::function<Result<TensorView>(std::string_view name)>;

/// Told in the middle of a step: this layer's keys and values of all its rows are in the pages.
using LayerDone = std::function<void(std::int64_t layer)>;

/// The result of a row depends on its own sequence only: not on batch, chunking, page numbers or threads.
class Model {
 public:
  /// Resolves every slot and checks its shape; a missing or misshapen tensor is an error that names it.
  /// `ops` outlives the model.
  static Result<std::unique_ptr<Model>> create(const ModelConfig& config, const SlotLookup& slots, Ops& ops);

  virtual ~Model() = default;
  [[nodiscard]] virtual const ModelConfig& config() const = 0;
  /// KV bytes of one token over all layers.
  [[nodiscard]] virtual std::size_t kv_bytes_per_token() const = 0;
  /// How many positions one page of `page_bytes` holds; at least 1 or the model cannot use such pages.
  [[nodiscard]] virtual std::int64_t tokens_per_page(std::size_t page_bytes) const = 0;
  /// Runs one step. `logits`: (slices that want logits, vocab_size), fp32, in the order of the slices.
  virtual void forward(std::span<const SequenceSlice> slices, PageArena arena, std::span<float> logits,
                       const LayerDone& layer_done = {}) = 0;
};

/// How the model divides pages of this size.
[[nodiscard]] inline KvLayout kv_layout(const Model& model, std::size_t page_bytes) {
  const ModelConfig& c = model.config();
  return {c.layers, c.kv_heads, c.head_dim, model.tokens_per_page(page_bytes)};
}

}  // namespace sangam
