// The dispatch policies: which machine runs which waiting job next. Values in, values out.
#pragma once

#include <string_view>

#include "actors/scheduler/plan.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

using DispatchPolicy = PrefillPlan (*)(const PlanInput&);

/// By the name that a configuration uses: lst_imh, edf, fcfs, round_robin, least_loaded, power_of_two.
[[nodiscard]] Result<DispatchPolicy> dispatch_policy(std::string_view name);

/// Latest start, iterated Moore-Hodgson: as many jobs on time as its sets allow, spread so that no machine
/// stands idle; then the jobs without a deadline on what becomes free first. Its steps are in lst_imh.hpp.
[[nodiscard]] PrefillPlan lst_imh(const PlanInput& input);

/// Earliest deadline first, each to the machine that finishes it first; drops nothing.
[[nodiscard]] PrefillPlan edf(const PlanInput& input);

/// In order of arrival, each to the machine that finishes it first.
[[nodiscard]] PrefillPlan fcfs(const PlanInput& input);

/// In order of arrival, a model's n-th job to the n-th of its machines in turn, busy or not.
[[nodiscard]] PrefillPlan round_robin(const PlanInput& input);

/// In order of arrival, each to the machine with the fewest requests, running or planned.
[[nodiscard]] PrefillPlan least_loaded(const PlanInput& input);

/// In order of arrival, each to the sooner done of two machines drawn from (seed, arrival), so that a job
/// keeps its pair in every plan (Mitzenmacher, 2001).
[[nodiscard]] PrefillPlan power_of_two(const PlanInput& input);

}  // namespace sangam
