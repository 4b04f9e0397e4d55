// What a fork costs its source: decode steps while the weights are read, beside decode steps alone.
#pragma once

#include <string>

#include "bench/depot.hpp"
#include "bench/report.hpp"

namespace sangam {

/// `source` has the large model active, `taker` has it cold. `holder`: where both keep their memory.
void report_source_load(const Report& report, Depot& source, Depot& taker, const std::string& holder);

}  // namespace sangam
