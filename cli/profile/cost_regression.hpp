// What a step takes, part by part, from samples of work that a worker measured itself: robust, and honest about
// what the samples cannot tell.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "actors/oracle/oracle_options.hpp"

namespace sangam {

/// Microseconds for one of something.
struct FittedCost {
  double value = 0.0;
  double low = 0.0;  ///< In nine of ten resamplings the value lies within [low, high].
  double high = 0.0;

  /// Whether it can be told from nothing.
  [[nodiscard]] bool is_told() const { return low > 0.0; }
};

/// seconds = step x steps + prompt x prompts + prompt_token x prefill tokens + sequence x output tokens + context x
/// context tokens, the law that oracle and simulator share.
struct FittedCosts {
  FittedCost step, prompt, prompt_token, sequence, context_token;
  double r2 = 0.0;            ///< Of the mean step times of samples: the share of their variance that is explained.
  double error_median = 0.0;  ///< Of the times of samples, relative.
};

struct CostName {
  std::string_view field;  ///< In files.
  std::string_view what;
  FittedCost FittedCosts::* cost;
};
inline constexpr std::array<CostName, 5> kCostNames{{
    {"step_us", "a step", &FittedCosts::step},
    {"prompt_us", "a prompt", &FittedCosts::prompt},
    {"prompt_token_us", "a token of it", &FittedCosts::prompt_token},
    {"sequence_us", "a token made", &FittedCosts::sequence},
    {"context_token_us", "a token read", &FittedCosts::context_token},
}};

/// Least squares of relative errors with Huber's weights (1964), no cost negative; spreads by resampling whole samples
/// (Efron's bootstrap, 1979). At least as many samples as costs, each with steps and time.
[[nodiscard]] FittedCosts fit_costs(std::span<const WorkSample> samples, std::uint64_t seed);

}  // namespace sangam
