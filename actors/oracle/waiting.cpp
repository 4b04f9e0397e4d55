// The wait's density is a sum of two exponentials; all sums are relative to its value at 0.
#include "actors/oracle/waiting.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

namespace sangam {
namespace {

constexpr double kRatioMax = 1e15;  // Beyond it nobody waits, in double precision.

using Complex = std::complex<double>;

/// The density of the wait relative to its value of `load` at 0, as r1, r2 of c1 exp(r1 x) + c2 exp(r2 x).
/// Time counts in mean services. The residual service time of a Gamma law has the moments 1, (1 + scv) / 2 and
/// (1 + scv)(1 + 2 scv) / 3 and the density 1 at 0; the rational transform of order two with these is
/// (s + b) / (s^2 + 4 s + b), b = 6 / (1 + scv), and the wait's is that of its renewals with probability `load`.
struct WaitDensity {
  double b;
  Complex r1, r2;

  WaitDensity(double load, double scv) : b(6.0 / (1.0 + scv)) {
    const double half = (4.0 - load) / 2.0;
    Complex root = std::sqrt(Complex(half * half - b * (1.0 - load)));
    if (std::abs(root) < 1e-6) root = 1e-6;
    r1 = -half + root;
    r2 = -half - root;
  }

  /// exp(-grow x) times the integral of exp(r x) over [0, x].
  static Complex integral(Complex r, double x, double grow) {
    const double damping = std::exp(-grow * x);
    if (std::abs(r * x) < 1e-6) return x * damping;
    return (std::exp((r - grow) * x) - damping) / r;
  }
};

}  // namespace

double share_served(const ServerLoad& load, int servers, double patience) {
  if (patience < 0.0 || servers < 1) return 0.0;
  if (load.per_second <= 0.0 || load.service <= 0.0) return 1.0;
  const double offered = load.per_second * load.service;
  // Probability of a free server, relative to that of all but one being busy, which the density begins with.
  double idle = 1.0;
  for (int m = 1; m < servers && idle < kRatioMax; ++m) idle = 1.0 + idle * m / offered;
  if (idle >= kRatioMax) return 1.0;
  const double rho = offered / servers;
  const double x = patience * servers / load.service;
  const WaitDensity wait(rho, load.service_scv);
  const double grow = std::max(0.0, wait.r1.real());  // Above saturation; taken out so that nothing overflows.
  const Complex waited = rho / (wait.r1 - wait.r2) *
                         ((wait.r1 + wait.b) * WaitDensity::integral(wait.r1, x, grow) -
                          (wait.r2 + wait.b) * WaitDensity::integral(wait.r2, x, grow));
  const double scale = std::exp(-grow * x);
  const double in_time = idle * scale + std::max(0.0, waited.real());
  // Servers that are busy do the work of those who are served: this is what all probabilities sum to.
  const double all = idle * scale + rho * (scale + std::max(0.0, waited.real()));
  return std::min(1.0, in_time / all);
}

std::vector<double> isotonic(std::span<const double> values, std::span<const double> weights) {
  struct Block {
    double mean, weight;
    std::size_t size;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < values.size(); ++i) {
    blocks.push_back({values[i], weights[i], 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean >= blocks.back().mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& pooled = blocks.back();
      const double weight = pooled.weight + last.weight;
      pooled.mean = (pooled.mean * pooled.weight + last.mean * last.weight) / weight;
      pooled.weight = weight;
      pooled.size += last.size;
    }
  }
  std::vector<double> fitted;
  fitted.reserve(values.size());
  for (const Block& block : blocks) fitted.insert(fitted.end(), block.size, block.mean);
  return fitted;
}

double logit(double share) { return std::log(share / (1.0 - share)); }

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace sangam
