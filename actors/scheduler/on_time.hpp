// The largest set of jobs that one machine can finish on time.
#pragma once

#include <span>
#include <vector>

#include "actors/scheduler/plan.hpp"

namespace sangam {

/// Both in microseconds; the deadline counts from the moment when the machine becomes free.
struct TimedJob {
  double deadline = 0.0;
  double length = 0.0;
  JobIndex job = 0;
};

/// A largest subset that one machine finishes on time, in the order of its deadlines (Moore and Hodgson,
/// 1968: take each job; when that makes the last one late, give up the longest). `jobs` come earliest
/// deadline first. O(n log k) for a subset of k.
[[nodiscard]] std::vector<JobIndex> on_time_subset(std::span<const TimedJob> jobs);

}  // namespace sangam
