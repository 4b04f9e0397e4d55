// LST-IMH as it serves: the sets, chosen again and spread, and behind them the jobs without a deadline.
#include "actors/scheduler/lst_imh.hpp"

#include <algorithm>

#include "actors/scheduler/policies.hpp"

namespace sangam {
namespace {

/// About a fifth of a millisecond's work.
constexpr std::size_t kChooseAgainSteps = 20'000;

std::size_t count_with_deadline(std::span<const PrefillJob> jobs) {
  const auto first_without = std::partition_point(jobs.begin(), jobs.end(),
                                                  [](const PrefillJob& job) { return job.has_deadline(); });
  return std::size_t(first_without - jobs.begin());
}

/// When a machine will be free, in microseconds from the clock's origin; exact below 2^53.
double micros_of(Instant t) { return double(t.time_since_epoch().count()); }

/// Appends the jobs without a deadline, in their order, each where it ends first. A machine that is booked
/// beyond the horizon takes no more of them: they would only be planned again.
void append_unhurried(PrefillPlan& plan, const PlanInput& input) {
  std::vector<double> end;
  for (MachineIndex i = 0; i < input.machines.size(); ++i) {
    end.push_back(micros_of(input.machines[i].free_at));
    for (JobIndex j : plan[i]) end[i] += input.machines[i].micros(input.jobs[j]);
  }
  const double horizon = micros_of(input.horizon);
  auto open = std::count_if(end.begin(), end.end(), [&](double e) { return e <= horizon; });
  for (auto j = JobIndex(count_with_deadline(input.jobs)); j < input.jobs.size() && open > 0; ++j) {
    MachineIndex best = 0;
    double best_end = PrefillCost{}.fixed;
    for (MachineIndex i = 0; i < end.size(); ++i) {
      if (end[i] > horizon) continue;
      const double done = end[i] + input.machines[i].micros(input.jobs[j]);
      if (done < best_end) best = i, best_end = done;
    }
    if (best_end == PrefillCost{}.fixed) continue;
    plan[best].push_back(j);
    end[best] = best_end;
    if (best_end > horizon) --open;
  }
}

}  // namespace

PrefillPlan keep_busy(PrefillPlan plan, const PlanInput& input) {
  std::vector<std::pair<JobIndex, MachineIndex>> planned;
  std::vector<MachineIndex> idle;
  std::vector<double> end;
  const double horizon = micros_of(input.horizon);
  for (MachineIndex i = 0; i < plan.size(); ++i) {
    end.push_back(micros_of(input.machines[i].free_at));
    if (plan[i].empty() && end[i] <= horizon) idle.push_back(i);
    for (JobIndex j : plan[i]) planned.emplace_back(j, i);
  }
  if (idle.empty() || planned.empty()) return plan;
  std::sort(planned.begin(), planned.end());  // Job indices are in the order of deadlines.
  PrefillPlan spread(plan.size());
  for (const auto& [job, owner] : planned) {
    MachineIndex best = owner;
    double best_end = end[owner] + input.machines[owner].micros(input.jobs[job]);
    for (MachineIndex i : idle) {
      const double done = end[i] + input.machines[i].micros(input.jobs[job]);
      if (done < best_end) best = i, best_end = done;
    }
    spread[best].push_back(job);
    end[best] = best_end;
    if (best != owner && best_end > horizon) std::erase(idle, best);
  }
  return spread;
}

PrefillPlan lst_imh(const PlanInput& input) {
  PrefillPlan plan = keep_busy(choose_again(lst_imh_sets(input), input, kChooseAgainSteps), input);
  // A machine that this has emptied may take jobs itself, planned ones or such as found no place before. Every
  // round serves more jobs, or some of them sooner; there are rarely more than two.
  for (PrefillPlan last; last != plan;) {
    last = plan;
    plan = keep_busy(fill_idle(std::move(plan), input), input);
  }
  append_unhurried(plan, input);
  return plan;
}

}  // namespace sangam
