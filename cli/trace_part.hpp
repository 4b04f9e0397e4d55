// Which part of a trace a command takes, and what it makes of it.
#pragma once

#include "sim/trace/trace.hpp"

namespace sangam {

struct TracePart {
  double from_s = 0.0;    ///< Seconds of the trace; what arrives earlier is left out.
  double for_s = 0.0;     ///< So many seconds of the trace; 0: to its end.
  std::size_t limit = 0;  ///< Requests at most, of those that scaling leaves; 0: all.
};

/// Cut, then scaled, then limited. An error where no request is left; `name` is the trace's, for it.
[[nodiscard]] Result<sim::Trace> part_of(sim::Trace trace, const TracePart& part, const sim::TraceScaling& scaling,
                                         const std::string& name);

}  // namespace sangam
