// The steps of LST-IMH, each a function from plan to plan. They see only the jobs with a deadline.
#pragma once

#include "actors/scheduler/plan.hpp"

namespace sangam {

/// The algorithm as it is proven. Machines choose in descending order of availability, each a largest on-time
/// subset of what is left: a machine that is free late has the fewest jobs to choose from, so it chooses first.
/// The union has at least half as many jobs as the optimum, in any order of machines, because each subset is
/// maximum. O(m n log n).
[[nodiscard]] PrefillPlan lst_imh_sets(const PlanInput& input);

/// Lets pairs of machines give their jobs back and choose again in the other order, where that serves more
/// jobs. Worth one or two in a hundred when machines are few; `steps_max` bounds the jobs that are looked at,
/// so in large plans only machines that follow each other in availability make pairs, and in very large none.
[[nodiscard]] PrefillPlan choose_again(PrefillPlan plan, const PlanInput& input, std::size_t steps_max);

/// Gives each machine without a job, latest first, a largest on-time subset of the jobs without a machine.
[[nodiscard]] PrefillPlan fill_idle(PrefillPlan plan, const PlanInput& input);

/// Moves jobs from their machine to one that the plan leaves idle and that finishes them sooner. The sets count
/// what is on time and nothing else, so one busy machine may have got all jobs while others stand still. A job
/// that moves, and every job behind it, ends earlier than planned: none becomes late. A machine that has got
/// work up to the horizon takes no more; it can wait for the next plan.
[[nodiscard]] PrefillPlan keep_busy(PrefillPlan plan, const PlanInput& input);

}  // namespace sangam
