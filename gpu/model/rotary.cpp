// The scalings as HF's rope_utils defines them, in double; angles are rounded to fp32 as the reference does.
#include "gpu/model/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sangam {
namespace {

/// Llama 3.1: long wavelengths are stretched, short ones kept, those between are mixed.
double llama3_frequency(double frequency, const RopeScaling& rope, double original_context) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < original_context / rope.high_freq_factor) return frequency;
  if (wavelength > original_context / rope.low_freq_factor) return frequency / rope.factor;
  const double kept =
      (original_context / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - kept) * frequency / rope.factor + kept * frequency;
}

/// YaRN (Peng et al., 2023, section 3.2): lanes that turn more than beta_fast times over the original context
/// are kept, those that turn less than beta_slow times are stretched, a ramp between.
struct YarnRamp {
  double low = 0;
  double high = 0;

  YarnRamp(const ModelConfig& config, double original_context) {
    const auto lane_turning = [&](double turns) {
      return double(config.head_dim) * std::log(original_context / (turns * 2.0 * std::numbers::pi)) /
             (2.0 * std::log(config.rope_theta));
    };
    low = std::max(std::floor(lane_turning(config.rope.beta_fast)), 0.0);
    high = std::min(std::ceil(lane_turning(config.rope.beta_slow)), double(config.head_dim - 1));
    if (low == high) high += 0.001;
  }
  [[nodiscard]] double stretched(double lane) const {
    return std::clamp((lane - low) / (high - low), 0.0, 1.0);
  }
};

double yarn_attention_factor(const RopeScaling& rope) {
  if (rope.attention_factor > 0) return rope.attention_factor;
  return rope.factor <= 1.0 ? 1.0 : 0.1 * std::log(rope.factor) + 1.0;
}

}  // namespace

Rotary::Rotary(const ModelConfig& config) {
  const RopeScaling& rope = config.rope;
  const auto original = double(rope.original_context > 0 ? rope.original_context : config.context);
  const YarnRamp ramp(config, original);
  for (std::int64_t lane = 0; lane < config.head_dim / 2; ++lane) {
    double frequency = std::pow(config.rope_theta, -2.0 * double(lane) / double(config.head_dim));
    switch (rope.kind) {
      case RopeScaling::Kind::none:
        break;
      case RopeScaling::Kind::linear:
        frequency /= rope.factor;
        break;
      case RopeScaling::Kind::llama3:
        frequency = llama3_frequency(frequency, rope, original);
        break;
      case RopeScaling::Kind::yarn: {
        const double stretched = ramp.stretched(double(lane));
        frequency = frequency / rope.factor * stretched + frequency * (1.0 - stretched);
        break;
      }
    }
    frequencies_.push_back(float(frequency));
  }
  if (rope.kind == RopeScaling::Kind::yarn) attention_factor_ = float(yarn_attention_factor(rope));
}

void Rotary::turn(std::int64_t position, float* cosine, float* sine) const {
  for (std::size_t lane = 0; lane < frequencies_.size(); ++lane) {
    const float angle = frequencies_[lane] * float(position);
    cosine[lane] = float(std::cos(double(angle))) * attention_factor_;
    sine[lane] = float(std::sin(double(angle))) * attention_factor_;
  }
}

}  // namespace sangam
