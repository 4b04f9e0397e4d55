// Times as a sum of counts with coefficients that are learned: so much a step, so much a token.
#pragma once

#include <array>
#include <cstddef>

namespace sangam {

/// Least squares of `time = x . coefficients` over what was measured, older measurements weighing less and less,
/// long ones not more than short ones, pulled gently to a prior. No coefficient is ever negative.
class CostFit {
 public:
  static constexpr std::size_t kSize = 4;
  using Vector = std::array<double, kSize>;

  /// `prior`: seconds a count; `typical`: the counts of an ordinary measurement, which give the prior its weight.
  CostFit(const Vector& prior, const Vector& typical);

  /// A span of work with these counts took so many seconds.
  void learn(const Vector& counts, double seconds);

  [[nodiscard]] const Vector& coefficients() const { return fit_; }
  [[nodiscard]] double seconds(const Vector& counts) const;

 private:
  void refit();

  Vector prior_, typical_;
  std::array<Vector, kSize> moments_{};  // Sum of w x x', in units of the typical counts.
  Vector targets_{};                     // Sum of w x time.
  Vector fit_;
};

}  // namespace sangam
