// A picture of one or several runs: load, goodput, devices and tokens on time over the time of the run.
#pragma once

#include <span>
#include <string>

#include "sim/report/report.hpp"

namespace sangam::sim {

/// One SVG file without outside references, a column a report, scales shared between columns. Follows the viewer's
/// light or dark scheme.
[[nodiscard]] std::string svg_of(std::span<const Report> reports);

}  // namespace sangam::sim
