// W0: a generated day of a production service that serves 62 applications with 9 models.
//
// Janus publishes figures of such a day but not its trace: 62 apps (40 on 6 models of one device, 16 on 2 of four, 6
// on one of sixteen), 12 % of apps asking 80 % of requests, 30 % making 80 % of tokens, jumps of 5 to 10 times within
// seconds, 603,000 sampled requests replayed in 30 minutes. W0 meets all of these; what is not published (each app's
// share, daily curve and burst lengths) is a choice, listed in docs/decisions.md.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/trace/trace.hpp"
#include "sim/trace/w0_rates.hpp"

namespace sangam::sim {

/// What of W0 may be chosen otherwise. The last two are not published; what is stays as it is whatever they are.
struct W0Options {
  std::size_t requests = 603'000;
  double minutes = 30.0;  ///< That the day is pressed into: 30 is 48 times as fast as it happened.
  double burst_hold_s = kBurstHoldMedian;  ///< Median, in seconds of the day; above 0.
  std::optional<double> first_share;       ///< Of requests, as `w0_apps_with` takes it; without: 30 %.
};

/// One day, with exactly so many requests; apps are those of `w0_apps()`, in that order. The same arguments give the
/// same trace.
[[nodiscard]] Trace w0(std::uint64_t seed, const W0Options& options = {});

}  // namespace sangam::sim
