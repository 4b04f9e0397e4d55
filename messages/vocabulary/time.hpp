// The one clock of the mesh. An Instant never leaves its process: messages carry durations, counted from
// the moment of sending, so that hosts need no common clock.
#pragma once

#include <chrono>

namespace sangam {

/// Monotonic. Only shells read it; cores are given the instant.
struct MeshClock {
  using rep = std::int64_t;
  using period = std::micro;
  using duration = std::chrono::microseconds;
  using time_point = std::chrono::time_point<MeshClock>;
  static constexpr bool is_steady = true;
};

using Instant = MeshClock::time_point;
using Micros = std::chrono::microseconds;
using Millis = std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

}  // namespace sangam
