// How the request rate of one W0 application goes through its day: daily curve, noise and bursts.
#pragma once

#include <span>
#include <vector>

#include "sim/trace/random.hpp"
#include "sim/trace/w0_apps.hpp"

namespace sangam::sim {

inline constexpr int kDaySeconds = 86'400;

/// Of its curve at a second of the day, which may be outside of [0, kDaySeconds): days are alike. Mean about 1.
[[nodiscard]] double curve_at(DayCurve curve, double second);

/// A jump of the rate: up in a line, held, and down exponentially.
struct RateBurst {
  double start = 0.0;          ///< Second of the day.
  double magnification = 1.0;  ///< Of the rate, at its height.
  double rise = 1.0;           ///< Seconds.
  double hold = 0.0;           ///< Seconds.
};

/// By what this burst multiplies the rate at a second; at least 1.
[[nodiscard]] double magnification_at(const RateBurst& burst, double second);

/// What is drawn of an app's day.
struct AppDay {
  double phase = 0.0;             ///< By how many seconds the curve is late.
  std::vector<RateBurst> bursts;  ///< In order of start. Where they overlap the higher one counts.
  std::vector<float> rate;        ///< Of each second, as a share of the day: adds up to 1.
};

inline constexpr double kBurstHoldMedian = 360.0;  // Seconds.

/// `rank` counts from 1; `burst_hold` is the median, in seconds.
[[nodiscard]] AppDay draw_day(const App& app, int rank, Random& random, double burst_hold = kBurstHoldMedian);

}  // namespace sangam::sim
