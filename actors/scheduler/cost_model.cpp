// The fit: normal equations of three unknowns, solved exactly under the condition that none is negative.
#include "actors/scheduler/cost_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace sangam {
namespace {

constexpr double kForgetting = 0.98;   // Weight of a prefill when the next one comes: a memory of about 50.
constexpr double kPriorWeight = 0.05;  // Of one prefill of 1,024 tokens; keeps the equations solvable.
constexpr double kScale = 1024.0;      // Tokens.
constexpr double kShortPrompt = 0.25;  // Scaled; from here on, errors count in proportion to the tokens.
constexpr double kSurpriseMax = 4.0;   // One stalled prefill must not spoil the model: counted at this much.
constexpr double kShareStep = 0.05;    // How fast the prefix cache's share follows.

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

/// Solves the rows and columns of `a x = b` that `mask` names, the other unknowns being zero; `a` is positive
/// definite, so elimination needs no pivots.
Vector solve(Matrix a, Vector b, unsigned mask) {
  for (unsigned k = 0; k < 3; ++k) {
    if (mask >> k & 1U) continue;
    for (unsigned i = 0; i < 3; ++i) a[i][k] = a[k][i] = 0.0;
    a[k][k] = 1.0;
    b[k] = 0.0;
  }
  for (unsigned k = 0; k < 3; ++k) {
    for (unsigned i = k + 1; i < 3; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (unsigned j = k; j < 3; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (unsigned k = 3; k-- > 0;) {
    for (unsigned j = k + 1; j < 3; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// x'ax - 2b'x: what least squares makes least.
double objective(const Matrix& a, const Vector& b, const Vector& x) {
  double sum = 0.0;
  for (unsigned i = 0; i < 3; ++i) {
    for (unsigned j = 0; j < 3; ++j) sum += x[i] * a[i][j] * x[j];
    sum -= 2.0 * b[i] * x[i];
  }
  return sum;
}

/// The optimum has some unknowns at zero and solves the equations of the others: with three, try all eight.
Vector solve_without_negatives(const Matrix& a, const Vector& b) {
  Vector best{};
  double best_objective = 0.0;
  for (unsigned mask = 1; mask < 8; ++mask) {
    const Vector x = solve(a, b, mask);
    if (*std::min_element(x.begin(), x.end()) < 0.0) continue;
    const double value = objective(a, b, x);
    if (value < best_objective) best = x, best_objective = value;
  }
  return best;
}

}  // namespace

CostModel::CostModel(double prior_tokens_per_second, Micros step_overhead)
    : prior_{double(step_overhead.count()) / 1e3, kScale / prior_tokens_per_second * 1e3, 0.0},
      overhead_(double(step_overhead.count())) {
  refit();
}

void CostModel::learn(Tokens whole, Tokens computed, Micros measured) {
  if (computed.count() <= 0 || whole.count() <= 0 || measured.count() <= 0) return;
  const double share = std::min(1.0, double(computed.count()) / double(whole.count()));
  const double n = double(computed.count()) / kScale;
  const double expected = cost_.micros(Tokens(std::int64_t(double(computed.count()) / computed_share_)));
  const double y = std::min(double(measured.count()), kSurpriseMax * expected) / 1e3;
  const double weight = 1.0 / ((kShortPrompt + n) * (kShortPrompt + n));
  const Vector x{1.0, n, n * n};
  for (unsigned i = 0; i < 3; ++i) {
    for (unsigned j = 0; j < 3; ++j) moments_[i][j] = kForgetting * moments_[i][j] + weight * x[i] * x[j];
    targets_[i] = kForgetting * targets_[i] + weight * x[i] * y;
  }
  computed_share_ += kShareStep * (share - computed_share_);
  refit();
}

void CostModel::refit() {
  Matrix a = moments_;
  Vector b = targets_;
  for (unsigned i = 0; i < 3; ++i) {
    a[i][i] += kPriorWeight;
    b[i] += kPriorWeight * prior_[i];
  }
  const Vector fit = solve_without_negatives(a, b);
  const double per_token = computed_share_ / kScale;
  cost_.fixed = std::max(fit[0] * 1e3, overhead_);
  cost_.per_token = fit[1] * 1e3 * per_token;
  cost_.per_token_squared = fit[2] * 1e3 * per_token * per_token;
}

}  // namespace sangam
