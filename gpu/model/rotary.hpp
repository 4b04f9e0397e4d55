// Rotary position embedding: which angle each pair of a head's lanes turns by at a position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/checkpoint/model_config.hpp"

namespace sangam {

class Rotary {
 public:
  explicit Rotary(const ModelConfig& config);

  /// Angles per position of each lane pair, (head_dim / 2).
  [[nodiscard]] std::span<const float> frequencies() const { return frequencies_; }
  /// Multiplies both cosine and sine (YaRN section 3.4); 1 elsewhere.
  [[nodiscard]] float attention_factor() const { return attention_factor_; }

  /// Cosines and sines of one position, (head_dim / 2) each.
  void turn(std::int64_t position, float* cosine, float* sine) const;

 private:
  std::vector<float> frequencies_;
  float attention_factor_ = 1.0f;
};

}  // namespace sangam
