// How good the forecasts were: errors and coverage against what then happened, as numbers that a metric can show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sangam {

/// Of one forecast quantity over its latest observations of all models.
struct ForecastScore {
  std::uint64_t count = 0;  ///< Observations since the start.
  double coverage = 0.0;    ///< Share that lay within the interval meant for 90 %; 0 without observations.
  double error_median = 0.0;  ///< Absolute for shares of tokens, relative to what was observed for demand.
  double error_p90 = 0.0;
};

struct OracleScore {
  ForecastScore prefill_attainment;
  ForecastScore decode_attainment;
  ForecastScore kv;
  ForecastScore compute;
  ForecastScore bandwidth;
};

/// Standard deviations from the middle to the ends of the interval.
inline constexpr double kInterval90 = 1.6449;

/// Widens or narrows intervals so that in the long run they hold nine times in ten, whatever the errors' distribution
/// (adaptive conformal inference; Gibbs and Candes, 2021): a miss widens nine times as much as a hit narrows.
class AdaptiveInterval {
 public:
  void note(bool covered);
  /// Of a deviation.
  [[nodiscard]] double factor() const;

 private:
  double log_factor_ = 0.0;
};

/// Each observation is held against the forecast that was made before it was learned from.
class Calibration {
 public:
  void note(double error, bool covered);
  [[nodiscard]] ForecastScore score() const;

 private:
  struct Outcome {
    double error;
    bool covered;
  };
  std::vector<Outcome> latest_;  // A ring.
  std::uint64_t count_ = 0;
};

struct Calibrations {
  Calibration prefill_attainment;
  Calibration decode_attainment;
  Calibration kv;
  Calibration compute;
  Calibration bandwidth;
};

}  // namespace sangam
