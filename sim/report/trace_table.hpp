// What a trace asks for, as text for a terminal.
#pragma once

#include <string>

#include "sim/trace/trace.hpp"

namespace sangam::sim {

/// Counts, lengths, rates over time and the largest apps.
[[nodiscard]] std::string table_of(const Trace& trace);

}  // namespace sangam::sim
