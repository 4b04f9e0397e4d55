// Holds a checkpoint against its configuration: what must be there, in which shape, and what is left over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/model_config.hpp"
#include "storage/checkpoint/safetensors.hpp"

namespace sangam {

struct ExpectedTensor {
  std::string name;  ///< As transformers names the parameters of a causal language model.
  std::vector<std::int64_t> shape;
};

/// Every parameter of the model, in the order of its layers. `lm_head.weight` is one only if it is untied.
[[nodiscard]] std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

struct TensorReport {
  /// Tied in effect: with a head of its own that differs from the embedding, a model is untied whatever its
  /// configuration says (as transformers decides since version 5).
  bool tied_embeddings = false;
  std::vector<std::string> warnings;  ///< One a tensor that will not be used, and one if tying is overruled.
};

/// Fails on the first parameter that is missing, or has another shape, or is not of a floating-point type;
/// the error names it and says how many there are.
[[nodiscard]] Result<TensorReport> check_tensors(const ModelConfig& config, const Checkpoint& checkpoint);

}  // namespace sangam
