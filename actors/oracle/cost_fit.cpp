// The fit: normal equations with a ridge, solved under the condition that no unknown is negative.
#include "actors/oracle/cost_fit.hpp"

#include <algorithm>

namespace sangam {
namespace {

constexpr double kForgetting = 0.995;  // Weight of a measurement when the next one comes: a memory of about 200.
constexpr double kPriorWeight = 0.05;  // Of one typical measurement; keeps the equations solvable.
constexpr double kSurpriseMax = 20.0;  // One stalled step must not spoil the fit: counted at this much.
constexpr int kSweeps = 60;

}  // namespace

CostFit::CostFit(const Vector& prior, const Vector& typical) : prior_(prior), typical_(typical), fit_(prior) {
  for (double& count : typical_) count = std::max(count, 1e-9);
}

double CostFit::seconds(const Vector& counts) const {
  double sum = 0.0;
  for (std::size_t i = 0; i < kSize; ++i) sum += counts[i] * fit_[i];
  return sum;
}

void CostFit::learn(const Vector& counts, double measured) {
  const double expected = seconds(counts);
  if (measured <= 0.0 || expected <= 0.0) return;
  const double y = std::min(measured, kSurpriseMax * expected);
  const double weight = 1.0 / (y * y);
  for (std::size_t i = 0; i < kSize; ++i) {
    const double x = counts[i] / typical_[i];
    for (std::size_t j = 0; j < kSize; ++j) {
      moments_[i][j] = kForgetting * moments_[i][j] + weight * x * counts[j] / typical_[j];
    }
    targets_[i] = kForgetting * targets_[i] + weight * x * y;
  }
  refit();
}

/// Coordinate descent on a strictly convex quadratic over the positive orthant: each step is the exact minimum in
/// one unknown, so it converges to the only optimum. It goes on from the last fit, which is near.
void CostFit::refit() {
  double scale = 0.0;
  for (std::size_t i = 0; i < kSize; ++i) scale = std::max(scale, prior_[i] * typical_[i]);
  const double ridge = kPriorWeight / (scale * scale);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < kSize; ++i) {
      double rest = targets_[i] + ridge * prior_[i] * typical_[i];
      for (std::size_t j = 0; j < kSize; ++j) rest -= j == i ? 0.0 : moments_[i][j] * fit_[j] * typical_[j];
      fit_[i] = std::max(0.0, rest / (moments_[i][i] + ridge)) / typical_[i];
    }
  }
}

}  // namespace sangam
