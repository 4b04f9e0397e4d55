// How many instances models get where their number is fixed beforehand.
#pragma once

#include <cstdint>
#include <map>

#include "sim/trace/trace.hpp"
#include "sim/world/scenario.hpp"

namespace sangam::sim {

/// The best that one who knows the trace, but may change nothing while it runs, could give: workers of each class are
/// filled with instances in proportion to the models' work (highest averages; device time of prompts, and of answers in
/// batches), at least one for each and no more than workers. An instance takes its weights and `kv` of a worker.
[[nodiscard]] std::map<ModelId, std::uint32_t> instances_by_work(const Scenario& scenario, const Trace& trace, Bytes kv);

}  // namespace sangam::sim
