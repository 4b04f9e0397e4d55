// The way from what is where to what shall be where, in steps that never ask more of a worker than it has.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/placement/packing.hpp"

namespace sangam {

/// By bin, beside its items in `target`: 0 for what is there already, else the step with which it comes.
using Steps = std::vector<std::vector<std::int64_t>>;

/// Instances of a step come when those of the steps before are there and what these replace has gone; an instance
/// that moves is there before it leaves elsewhere, where there is room for that. Where moves wait for each other in
/// a circle, the least loaded ones among what stands in the way leave before they are there again. In `present` an
/// item may be in several bins; `target` fits and has each item at most once. What fits is counted in HBM: a second
/// copy of a model takes bytes, but no load.
[[nodiscard]] Steps steps_between(const PackingProblem& problem, const Packing& present, const Packing& target);

}  // namespace sangam
