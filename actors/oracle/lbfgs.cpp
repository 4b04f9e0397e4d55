// The two-loop recursion, and steps that are halved until they lead down.
#include "actors/oracle/lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

namespace sangam {
namespace {

constexpr std::size_t kPairs = 8;
constexpr double kDescent = 1e-4;    // Of what the slope promises (Armijo).
constexpr double kStepMax = 1.5;     // In any unknown at once: they are logarithms here.
constexpr double kGradientMin = 1e-4;
constexpr int kHalvings = 20;

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void add(std::span<double> a, double factor, std::span<const double> b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}

/// What the last steps have shown of the curvature.
struct Curvature {
  struct Pair {
    std::vector<double> step, change;
    double product;
  };
  std::deque<Pair> pairs;

  void note(std::vector<double> step, std::vector<double> change) {
    const double product = dot(step, change);
    if (product <= 1e-10 * std::sqrt(dot(step, step) * dot(change, change))) return;
    pairs.push_back({std::move(step), std::move(change), product});
    if (pairs.size() > kPairs) pairs.pop_front();
  }

  /// Minus the inverse Hessian's estimate times `gradient`.
  [[nodiscard]] std::vector<double> direction(const std::vector<double>& gradient) const {
    std::vector<double> d = gradient;
    std::vector<double> factors(pairs.size());
    for (std::size_t i = pairs.size(); i-- > 0;) {
      factors[i] = dot(pairs[i].step, d) / pairs[i].product;
      add(d, -factors[i], pairs[i].change);
    }
    const double scale = pairs.empty() ? 1.0 / std::max(1.0, std::sqrt(dot(gradient, gradient)))
                                       : pairs.back().product / dot(pairs.back().change, pairs.back().change);
    for (double& value : d) value *= scale;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const double back = dot(pairs[i].change, d) / pairs[i].product;
      add(d, factors[i] - back, pairs[i].step);
    }
    for (double& value : d) value = -value;
    return d;
  }
};

}  // namespace

Minimum minimise(const Objective& objective, std::vector<double> start, int iterations_max) {
  Minimum best{std::move(start), 0.0};
  std::vector<double> gradient(best.x.size());
  best.value = objective(best.x, gradient);
  Curvature curvature;
  for (int iteration = 0; iteration < iterations_max && std::isfinite(best.value); ++iteration) {
    std::vector<double> direction = curvature.direction(gradient);
    double slope = dot(direction, gradient);
    if (slope >= 0.0) {
      curvature.pairs.clear();
      direction = curvature.direction(gradient);
      slope = dot(direction, gradient);
    }
    double longest = 0.0;
    for (const double d : direction) longest = std::max(longest, std::abs(d));
    double length = longest > kStepMax ? kStepMax / longest : 1.0;
    bool improved = false;
    for (int halving = 0; halving < kHalvings && !improved; ++halving, length *= 0.5) {
      std::vector<double> x = best.x;
      add(x, length, direction);
      std::vector<double> next(x.size());
      const double value = objective(x, next);
      if (!std::isfinite(value) || value > best.value + kDescent * length * slope) continue;
      std::vector<double> step = x;
      std::vector<double> change = next;
      add(step, -1.0, best.x);
      add(change, -1.0, gradient);
      curvature.note(std::move(step), std::move(change));
      best = {std::move(x), value};
      gradient = std::move(next);
      improved = true;
    }
    if (!improved || dot(gradient, gradient) < kGradientMin * kGradientMin) break;
  }
  return best;
}

}  // namespace sangam
