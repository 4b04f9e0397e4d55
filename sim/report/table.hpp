// Reports as text for a terminal.
#pragma once

#include <span>
#include <string>

#include "sim/report/report.hpp"

namespace sangam::sim {

/// All figures of a report, its course in time and its worst apps.
[[nodiscard]] std::string table_of(const Report& report);

/// The figures of several reports, a column each; what one has and another has not is a dash.
[[nodiscard]] std::string compare(std::span<const Report> reports);

}  // namespace sangam::sim
