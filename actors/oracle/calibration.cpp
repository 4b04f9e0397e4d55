// Percentiles over a ring.
#include "actors/oracle/calibration.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

constexpr std::size_t kLatest = 2048;

}  // namespace

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
