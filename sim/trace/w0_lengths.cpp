// Lognormal lengths with a given mean after cuts.
#include "sim/trace/w0_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sangam::sim {
namespace {

double normal_below(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

/// Mean of exp(mu + sigma z), cut at 1 and `most`.
double cut_mean(double mu, double sigma, double most) {
  const double low = -mu / sigma;
  const double high = (std::log(most) - mu) / sigma;
  const double middle = std::exp(mu + sigma * sigma / 2.0) * (normal_below(high - sigma) - normal_below(low - sigma));
  return normal_below(low) + middle + most * (1.0 - normal_below(high));
}

/// `cut_mean` grows with mu; halving finds it.
double mu_of(LengthSpread spread, double most) {
  double low = -40.0, high = 40.0;
  for (int step = 0; step < 80; ++step) {
    const double mu = (low + high) / 2.0;
    (cut_mean(mu, spread.sigma, most) < spread.mean ? low : high) = mu;
  }
  return low;
}

}  // namespace

Lengths::Lengths(LengthSpread spread, Tokens most)
    : sigma_(spread.sigma), most_(double(most.count())), mu_(mu_of(spread, most_)) {}

Tokens Lengths::at(double quantile_normal) const {
  return Tokens(std::llround(std::clamp(std::exp(mu_ + sigma_ * quantile_normal), 1.0, most_)));
}

LengthPair::Draw LengthPair::draw(Random& random) const {
  // Pearson's correlation of two normals whose rank correlation is 0.10 (Kruskal, 1958).
  const double correlation = 2.0 * std::sin(std::numbers::pi * 0.10 / 6.0);
  const double first = random.normal();
  const double second = correlation * first + std::sqrt(1.0 - correlation * correlation) * random.normal();
  return {input_.at(first), output_.at(second)};
}

}  // namespace sangam::sim
