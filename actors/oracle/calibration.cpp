// Percentiles over a ring.
#include "actors/oracle/calibration.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

constexpr std::size_t kLatest = 2048;

constexpr double kMiss = 0.09;  // Steps of the logarithm: after a miss,
constexpr double kHit = 0.01;   // and after a hit; their ratio is that of the interval's shares.
constexpr double kLogFactorMax = 2.0;

}  // namespace

void AdaptiveInterval::note(bool covered) {
  log_factor_ = std::clamp(log_factor_ + (covered ? -kHit : kMiss), -kLogFactorMax, kLogFactorMax);
}

double AdaptiveInterval::factor() const { return std::exp(log_factor_); }

void Calibration::note(double error, bool covered) {
  if (!std::isfinite(error)) return;
  if (latest_.size() < kLatest) {
    latest_.push_back({error, covered});
  } else {
    latest_[std::size_t(count_ % kLatest)] = {error, covered};
  }
  ++count_;
}

ForecastScore Calibration::score() const {
  ForecastScore score;
  score.count = count_;
  if (latest_.empty()) return score;
  std::vector<double> errors;
  double covered = 0.0;
  for (const Outcome& outcome : latest_) {
    errors.push_back(outcome.error);
    covered += outcome.covered ? 1.0 : 0.0;
  }
  std::sort(errors.begin(), errors.end());
  score.coverage = covered / double(errors.size());
  score.error_median = errors[errors.size() / 2];
  score.error_p90 = errors[errors.size() * 9 / 10];
  return score;
}

}  // namespace sangam
