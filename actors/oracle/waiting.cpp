// The wait's density is a sum of two exponentials; all sums are relative to its value at 0.
#include "actors/oracle/waiting.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

constexpr double kRatioMax = 1e15;  // Beyond it nobody waits, in double precision.

constexpr double kNear = 1e-6;  // Below it, a linear term is all of an exponential.

}  // namespace

/// Time counts in mean services of all servers together. The residual of a Gamma service has the moments 1,
/// (1 + scv) / 2 and (1 + scv)(1 + 2 scv) / 3 and the density 1 at 0; the rational transform of order two with these
/// is (s + b) / (s^2 + 4 s + b), b = 6 / (1 + scv), and the wait's is that of its renewals with probability rho.
ImpatientQueue::ImpatientQueue(const ServerLoad& load, int servers) {
  const double offered = load.per_second * load.service;
  if (offered <= 0.0 || servers < 1) {
    idle_ = servers < 1 ? 0.0 : kRatioMax;
    return;
  }
  for (int m = 1; m < servers && idle_ < kRatioMax; ++m) idle_ = 1.0 + idle_ * m / offered;
  rho_ = offered / servers;
  pace_ = servers / load.service;
  const double b = 6.0 / (1.0 + load.service_scv);
  const double half = (4.0 - rho_) / 2.0;
  Complex apart = std::sqrt(Complex(half * half - b * (1.0 - rho_)));
  if (std::abs(apart) < kNear) apart = kNear;
  root_[0] = -half + apart;
  root_[1] = -half - apart;
  part_[0] = rho_ * (root_[0] + b) / (2.0 * apart);
  part_[1] = -rho_ * (root_[1] + b) / (2.0 * apart);
  growth_ = std::max(0.0, root_[0].real());
}

double ImpatientQueue::share_served(double patience) const {
  if (patience < 0.0 || idle_ == 0.0) return 0.0;
  if (idle_ >= kRatioMax) return 1.0;
  // Above saturation all is divided by exp(growth x), so that nothing overflows.
  const double x = patience * pace_;
  const double scale = std::exp(-growth_ * x);
  const auto integral = [&](Complex root) -> Complex {
    if (std::abs(root * x) < kNear) return x * scale;
    const Complex z = (root - growth_) * x;
    return ((z.imag() == 0.0 ? Complex(std::exp(z.real())) : std::exp(z)) - scale) / root;
  };
  const Complex density_sum = part_[0] * integral(root_[0]) + part_[1] * integral(root_[1]);
  const double waited = std::max(0.0, density_sum.real());
  const double in_time = idle_ * scale + waited;
  // Servers that are busy do the work of those who are served: this is what all probabilities sum to.
  return std::min(1.0, in_time / (idle_ * scale + rho_ * (scale + waited)));
}

BurstyQueue::BurstyQueue(ServerLoad load, double peakedness, int servers)
    : part_(servers / peakedness - std::floor(servers / peakedness)),
      below_({load.per_second / peakedness, load.service, load.service_scv}, int(servers / peakedness)),
      above_({load.per_second / peakedness, load.service, load.service_scv}, int(servers / peakedness) + 1) {}

double BurstyQueue::share_served(double patience) const {
  const double below = below_.share_served(patience);
  return part_ > 0.0 ? below + part_ * (above_.share_served(patience) - below) : below;
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
