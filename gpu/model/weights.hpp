// A model's table: each slot of each layer, resolved by its HF tensor name and checked against the
// configuration.
#pragma once

#include <string_view>
#include <vector>

#include "gpu/kernels/ops.hpp"
#include "gpu/model/model.hpp"

namespace sangam {

/// Vectors are kept as fp32 copies (a few kilobytes a layer); an empty one is absent.
struct LayerWeights {
  std::vector<float> attention_norm;
  Linear q, k, v, o;
  std::vector<float> q_bias, k_bias, v_bias, o_bias;
  std::vector<float> q_norm, k_norm;
  std::vector<float> mlp_norm;
  Linear gate, up, down;
  std::vector<float> gate_bias, up_bias, down_bias;
};

struct ModelWeights {
  Linear embedding;
  std::vector<LayerWeights> layers;
  std::vector<float> norm;
  Linear head;  ///< The embedding itself where they are tied.
};

/// Refuses, by name, what is missing, of another shape or size, or of a type that the kernels do not take.
[[nodiscard]] Result<ModelWeights> resolve_weights(const ModelConfig& config, const SlotLookup& slots);

}  // namespace sangam
