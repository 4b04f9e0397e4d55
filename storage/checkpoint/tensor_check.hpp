// Holds a checkpoint against its configuration: what must be there, in which shape, and what is left over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/model_config.hpp"
#include "storage/checkpoint/safetensors.hpp"
#include "storage/coding/linear_parts.hpp"

namespace sangam {

struct ExpectedTensor {
  std::string name;  ///< As transformers names the parameters of a causal language model, or of LinearParts.
  std::vector<std::int64_t> shape;
  std::optional<DType> dtype{};  ///< None: bf16, f16 or f32.
};

/// Every parameter of the model, in the order of its layers, in the formats that `stored` has: plain where it has none.
/// `lm_head` is one only if it is untied. Fails, by name, where formats do not fit together.
[[nodiscard]] Result<std::vector<ExpectedTensor>> expected_tensors(const ModelConfig& config, const TensorLookup& stored);

/// `checkpoint` outlives it.
[[nodiscard]] TensorLookup lookup_in(const Checkpoint& checkpoint);

/// What is wrong with a tensor for what is expected; empty: nothing.
[[nodiscard]] std::string fault_of(const ExpectedTensor& want, DType dtype, const std::vector<std::int64_t>& shape);

struct TensorReport {
  /// Tied in effect: with a head of its own that differs from the embedding, a model is untied whatever its
  /// configuration says (as transformers decides since version 5).
  bool tied_embeddings = false;
  std::vector<std::string> warnings;  ///< One a tensor that will not be used, and one if tying is overruled.
};

/// Fails on the first parameter that is missing, or has another shape or type, or whose format is contradictory; the
/// error names it and says how many are missing.
[[nodiscard]] Result<TensorReport> check_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

}  // namespace sangam
