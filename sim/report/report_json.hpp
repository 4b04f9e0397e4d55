// A report as JSON, for programs. Shares are in [0, 1], times say their unit, what there is not is null.
#pragma once

#include <string>

#include "sim/report/report.hpp"

namespace sangam::sim {

/// One object; `format` is 1 and is raised when the meaning of a field changes.
[[nodiscard]] std::string json_of(const Report& report);

}  // namespace sangam::sim
