// What a prefill takes on one instance, learned from what its prefills took.
#pragma once

#include <array>

#include "actors/scheduler/plan.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// Least squares of c0 + c1 n + c2 n^2 over the measured prefills, older ones weighing less and less, long
/// ones not more than short ones, pulled gently to the prior. No coefficient is ever negative, so the time is positive and grows with the tokens.
class CostModel {
 public:
  /// `step_overhead`: what a step takes at least, however short the prompt.
  CostModel(double prior_tokens_per_second, Micros step_overhead);

  /// A prefill of `whole` tokens, of which the prefix cache left `computed` to do, took `measured`.
  void learn(Tokens whole, Tokens computed, Micros measured);

  /// For a prompt's whole tokens: the share that the prefix cache has lately spared is taken off.
  [[nodiscard]] const PrefillCost& cost() const { return cost_; }

 private:
  using Coefficients = std::array<double, 3>;  // Milliseconds, over powers of n / 1024: all of order one.

  void refit();

  Coefficients prior_{};
  std::array<Coefficients, 3> moments_{};  // Sum of w x x'.
  Coefficients targets_{};                 // Sum of w x y.
  double computed_share_ = 1.0;
  double overhead_ = 0.0;  // Microseconds.
  PrefillCost cost_;
};

}  // namespace sangam
