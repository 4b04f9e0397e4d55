// Non-negative least squares over five unknowns by trying every set of those that are not zero.
#include "cli/profile/cost_regression.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace sangam {
namespace {

constexpr std::size_t kSize = kCostNames.size();
constexpr int kReweightings = 12;
constexpr int kResamplings = 300;
constexpr double kHuber = 1.345;      // Deviations; 95 % efficient where errors are normal (Huber, 1981).
constexpr double kMadToDeviation = 1.4826;
constexpr double kErrorLeast = 1e-4;  // Relative: clocks tell no more.

using Vector = std::array<double, kSize>;
using Matrix = std::array<Vector, kSize>;

/// One equation, scaled so that its time is 1: the error is then relative.
struct Equation {
  Vector x{};
  double weight = 1.0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Solves `a b = c` for the unknowns in `set`, the others being zero; nothing where it is singular.
bool solve(Matrix a, Vector c, unsigned set, Vector& b) {
  std::vector<std::size_t> in;
  for (std::size_t i = 0; i < kSize; ++i) {
    if ((set >> i & 1U) != 0) in.push_back(i);
  }
  b = {};
  for (std::size_t k = 0; k < in.size(); ++k) {
    const auto pivot = std::max_element(in.begin() + std::ptrdiff_t(k), in.end(), [&](std::size_t i, std::size_t j) {
      return std::abs(a[i][in[k]]) < std::abs(a[j][in[k]]);
    });
    if (std::abs(a[*pivot][in[k]]) < 1e-12) return false;
    std::swap(a[*pivot], a[in[k]]);
    std::swap(c[*pivot], c[in[k]]);
    for (std::size_t r = k + 1; r < in.size(); ++r) {
      const double factor = a[in[r]][in[k]] / a[in[k]][in[k]];
      for (const std::size_t column : in) a[in[r]][column] -= factor * a[in[k]][column];
      c[in[r]] -= factor * c[in[k]];
    }
  }
  for (std::size_t k = in.size(); k-- > 0;) {
    double rest = c[in[k]];
    for (std::size_t r = k + 1; r < in.size(); ++r) rest -= a[in[k]][in[r]] * b[in[r]];
    b[in[k]] = rest / a[in[k]][in[k]];
  }
  return true;
}

/// The optimum is the free optimum of the unknowns that are positive in it, so it is among these.
Vector non_negative(const std::vector<Equation>& equations) {
  Matrix a{};
  Vector c{};
  for (const Equation& e : equations) {
    for (std::size_t i = 0; i < kSize; ++i) {
      for (std::size_t j = 0; j < kSize; ++j) a[i][j] += e.weight * e.x[i] * e.x[j];
      c[i] += e.weight * e.x[i];
    }
  }
  Vector best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned set = 1; set < 1U << kSize; ++set) {
    Vector b;
    if (!solve(a, c, set, b) || std::any_of(b.begin(), b.end(), [](double v) { return v < 0.0; })) continue;
    double left = 0.0;  // The sum of squares less its constant part.
    for (std::size_t i = 0; i < kSize; ++i) {
      left -= 2.0 * b[i] * c[i];
      for (std::size_t j = 0; j < kSize; ++j) left += b[i] * a[i][j] * b[j];
    }
    if (left < least) {
      least = left;
      best = b;
    }
  }
  return best;
}

double dot(const Vector& x, const Vector& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kSize; ++i) sum += x[i] * b[i];
  return sum;
}

Vector robust(std::vector<Equation> equations) {
  Vector b{};
  for (int round = 0; round < kReweightings; ++round) {
    b = non_negative(equations);
    std::vector<double> errors;
    for (const Equation& e : equations) errors.push_back(std::abs(1.0 - dot(e.x, b)));
    const double deviation = std::max(kErrorLeast, kMadToDeviation * median(errors));
    for (std::size_t i = 0; i < equations.size(); ++i) {
      equations[i].weight = std::min(1.0, kHuber * deviation / std::max(errors[i], 1e-12));
    }
  }
  return b;
}

Vector counts_of(const WorkSample& sample) {
  return {sample.steps, sample.prompts, sample.prefill_tokens, sample.output_tokens, sample.context_tokens};
}

void judge(std::span<const WorkSample> samples, const Vector& fitted, FittedCosts& costs) {
  std::vector<double> errors;
  double mean = 0.0;
  for (const WorkSample& sample : samples) mean += sample.seconds / sample.steps / double(samples.size());
  double left = 0.0;
  double all = 0.0;
  for (const WorkSample& sample : samples) {
    const double told = dot(counts_of(sample), fitted);
    errors.push_back(std::abs(told / sample.seconds - 1.0));
    left += std::pow((sample.seconds - told) / sample.steps, 2.0);
    all += std::pow(sample.seconds / sample.steps - mean, 2.0);
  }
  costs.error_median = median(errors);
  costs.r2 = all > 0.0 ? 1.0 - left / all : 0.0;
}

}  // namespace

FittedCosts fit_costs(std::span<const WorkSample> samples, std::uint64_t seed) {
  Vector scale{};  // Of each count, so that equations are well conditioned.
  for (const WorkSample& sample : samples) {
    for (std::size_t i = 0; i < kSize; ++i) scale[i] = std::max(scale[i], counts_of(sample)[i] / sample.seconds);
  }
  std::vector<Equation> equations;
  for (const WorkSample& sample : samples) {
    Equation equation;
    for (std::size_t i = 0; i < kSize; ++i) {
      if (scale[i] > 0.0) equation.x[i] = counts_of(sample)[i] / sample.seconds / scale[i];
    }
    equations.push_back(equation);
  }
  const auto unscaled = [&](Vector b) {
    for (std::size_t i = 0; i < kSize; ++i) b[i] = scale[i] > 0.0 ? b[i] / scale[i] : 0.0;
    return b;
  };
  const Vector fitted = unscaled(robust(equations));
  std::array<std::vector<double>, kSize> drawn;
  std::mt19937_64 random(seed);
  for (int round = 0; round < kResamplings; ++round) {
    std::vector<Equation> again;
    for (std::size_t i = 0; i < equations.size(); ++i) again.push_back(equations[random() % equations.size()]);
    const Vector b = unscaled(robust(std::move(again)));
    for (std::size_t i = 0; i < kSize; ++i) drawn[i].push_back(b[i]);
  }
  FittedCosts costs;
  for (std::size_t i = 0; i < kSize; ++i) {
    std::sort(drawn[i].begin(), drawn[i].end());
    costs.*kCostNames[i].cost = {fitted[i] * 1e6, drawn[i][kResamplings / 20] * 1e6,
                                 drawn[i][kResamplings - 1 - kResamplings / 20] * 1e6};
  }
  judge(samples, fitted, costs);
  return costs;
}

}  // namespace sangam
