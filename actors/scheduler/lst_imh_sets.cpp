// The sets of LST-IMH, over machines that differ in speed and in the models they hold.
#include <algorithm>
#include <numeric>

#include "actors/scheduler/lst_imh.hpp"
#include "actors/scheduler/on_time.hpp"

namespace sangam {
namespace {

std::vector<MachineIndex> by_descending_availability(std::span<const PrefillMachine> machines) {
  std::vector<MachineIndex> order(machines.size());
  std::iota(order.begin(), order.end(), MachineIndex{0});
  std::sort(order.begin(), order.end(), [&](MachineIndex a, MachineIndex b) {
    return machines[a].free_at != machines[b].free_at ? machines[a].free_at > machines[b].free_at : a < b;
  });
  return order;
}

/// Jobs with a deadline that wait for a machine to choose them, earliest deadline first.
class Pool {
 public:
  Pool(const PrefillPlan& plan, const PlanInput& input) : input_(input), taken_(input.jobs.size(), 0) {
    for (const auto& row : plan) {
      for (JobIndex j : row) taken_[j] = 1;
    }
    for (JobIndex j = 0; j < input.jobs.size() && input.jobs[j].has_deadline(); ++j) {
      if (!taken_[j]) left_.push_back(j);
    }
  }

  [[nodiscard]] std::size_t size() const { return left_.size(); }

  /// A largest subset of the pool that machine `i` finishes on time; it leaves the pool.
  std::vector<JobIndex> choose(MachineIndex i) {
    const PrefillMachine& machine = input_.machines[i];
    candidates_.clear();
    for (JobIndex j : left_) {
      const auto time_left = double((input_.jobs[j].deadline - machine.free_at).count());
      const double length = machine.micros(input_.jobs[j]);
      if (length <= time_left) candidates_.push_back({time_left, length, j});
    }
    std::vector<JobIndex> chosen = on_time_subset(candidates_);
    for (JobIndex j : chosen) taken_[j] = 1;
    if (!chosen.empty()) std::erase_if(left_, [&](JobIndex j) { return taken_[j] != 0; });
    return chosen;
  }

  void give_back(const std::vector<JobIndex>& row) {
    for (JobIndex j : row) taken_[j] = 0;
    const auto middle = std::ptrdiff_t(left_.size());
    left_.insert(left_.end(), row.begin(), row.end());
    std::inplace_merge(left_.begin(), left_.begin() + middle, left_.end());
  }

  void take(const std::vector<JobIndex>& row) {
    for (JobIndex j : row) taken_[j] = 1;
    std::erase_if(left_, [&](JobIndex j) { return taken_[j] != 0; });
  }

 private:
  const PlanInput& input_;
  std::vector<char> taken_;  // By JobIndex.
  std::vector<JobIndex> left_;
  std::vector<TimedJob> candidates_;
};

}  // namespace

PrefillPlan fill_idle(PrefillPlan plan, const PlanInput& input) {
  Pool pool(plan, input);
  if (pool.size() == 0) return plan;
  for (MachineIndex i : by_descending_availability(input.machines)) {
    if (plan[i].empty() && pool.size() > 0) plan[i] = pool.choose(i);
  }
  return plan;
}

PrefillPlan lst_imh_sets(const PlanInput& input) {
  return fill_idle(PrefillPlan(input.machines.size()), input);
}

PrefillPlan choose_again(PrefillPlan plan, const PlanInput& input, std::size_t steps_max) {
  Pool pool(plan, input);
  if (pool.size() == 0) return plan;
  const std::vector<MachineIndex> order = by_descending_availability(input.machines);
  const std::size_t all_neighbours = 1 + order.size() * input.jobs.size();
  const std::size_t reach = std::min(order.size(), steps_max / all_neighbours);
  for (std::size_t first = 0; first < order.size(); ++first) {
    const std::size_t end = std::min(order.size(), first + 1 + reach);
    for (std::size_t second = first + 1; second < end && pool.size() > 0; ++second) {
      auto& row = plan[order[first]];
      auto& other = plan[order[second]];
      pool.give_back(row);
      pool.give_back(other);
      auto new_other = pool.choose(order[second]);
      auto new_row = pool.choose(order[first]);
      if (new_row.size() + new_other.size() > row.size() + other.size()) {
        row.swap(new_row);
        other.swap(new_other);
      } else {
        pool.give_back(new_row);
        pool.give_back(new_other);
        pool.take(row);
        pool.take(other);
      }
    }
  }
  return plan;
}

}  // namespace sangam
