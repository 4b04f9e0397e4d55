// W0: a generated day of a production service that serves 62 applications with 9 models.
//
// Janus publishes figures of such a day but not its trace: 62 apps (40 on 6 models of one device, 16 on 2 of four, 6
// on one of sixteen), 12 % of apps asking 80 % of requests, 30 % making 80 % of tokens, jumps of 5 to 10 times within
// seconds, 603,000 sampled requests replayed in 30 minutes. W0 meets all of these; what is not published (each app's
// share, daily curve and burst lengths) is a choice, listed in docs/decisions.md.
#pragma once

#include <cstdint>

#include "sim/trace/trace.hpp"

namespace sangam::sim {

inline constexpr std::size_t kW0Requests = 603'000;
inline constexpr double kW0Minutes = 30.0;

/// One day in `minutes`, with exactly `requests` requests; apps are those of `w0_apps()`, in that order. The same
/// arguments give the same trace. A day in 30 minutes runs 48 times as fast as it happened.
[[nodiscard]] Trace w0(std::uint64_t seed, std::size_t requests = kW0Requests, double minutes = kW0Minutes);

}  // namespace sangam::sim
