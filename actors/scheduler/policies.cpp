// The named policies beside LST-IMH: each takes the jobs in one order and gives each to one machine.
#include "actors/scheduler/policies.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>

namespace sangam {
namespace {

/// What list scheduling knows while it hands out the jobs.
struct Booking {
  std::vector<double> end;            // Microseconds from the clock's origin.
  std::vector<std::int64_t> running;  // Requests, running or planned.
};

Booking book_nothing(std::span<const PrefillMachine> machines) {
  Booking booking;
  for (const PrefillMachine& machine : machines) {
    booking.end.push_back(double(machine.free_at.time_since_epoch().count()));
    booking.running.push_back(machine.running);
  }
  return booking;
}

std::vector<JobIndex> as_given(const PlanInput& input) {
  std::vector<JobIndex> order(input.jobs.size());
  std::iota(order.begin(), order.end(), JobIndex{0});
  return order;
}

std::vector<JobIndex> by_arrival(const PlanInput& input) {
  std::vector<JobIndex> order = as_given(input);
  std::sort(order.begin(), order.end(),
            [&](JobIndex a, JobIndex b) { return input.jobs[a].arrival < input.jobs[b].arrival; });
  return order;
}

std::vector<MachineIndex> holders(const PlanInput& input, const PrefillJob& job) {
  std::vector<MachineIndex> held;
  for (MachineIndex i = 0; i < input.machines.size(); ++i) {
    if (input.machines[i].micros(job) < PrefillCost{}.fixed) held.push_back(i);
  }
  return held;
}

/// `choose(job, holders, booking)` picks one of the machines that hold the job's model.
template <class Choose>
PrefillPlan list_schedule(const PlanInput& input, const std::vector<JobIndex>& order, Choose choose) {
  PrefillPlan plan(input.machines.size());
  Booking booking = book_nothing(input.machines);
  for (JobIndex j : order) {
    const PrefillJob& job = input.jobs[j];
    const std::vector<MachineIndex> held = holders(input, job);
    if (held.empty()) continue;
    const MachineIndex i = choose(job, held, booking);
    plan[i].push_back(j);
    booking.end[i] += input.machines[i].micros(job);
    booking.running[i] += 1;
  }
  return plan;
}

/// Of the machines `held`, the one that finishes the job first; the first of equals.
auto first_done(const PlanInput& input) {
  return [&input](const PrefillJob& job, std::span<const MachineIndex> held, const Booking& booking) {
    const auto done = [&](MachineIndex i) { return booking.end[i] + input.machines[i].micros(job); };
    return *std::min_element(held.begin(), held.end(),
                             [&](MachineIndex a, MachineIndex b) { return done(a) < done(b); });
  };
}

/// A well mixed function of its argument (the finaliser of SplitMix64): randomness that is a value.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

PrefillPlan edf(const PlanInput& input) { return list_schedule(input, as_given(input), first_done(input)); }

PrefillPlan fcfs(const PlanInput& input) { return list_schedule(input, by_arrival(input), first_done(input)); }

PrefillPlan round_robin(const PlanInput& input) {
  return list_schedule(input, by_arrival(input),
                       [](const PrefillJob& job, const std::vector<MachineIndex>& held, const Booking&) {
                         return held[job.turn % held.size()];
                       });
}

PrefillPlan least_loaded(const PlanInput& input) {
  return list_schedule(
      input, by_arrival(input),
      [](const PrefillJob&, const std::vector<MachineIndex>& held, const Booking& booking) {
        return *std::min_element(held.begin(), held.end(), [&](MachineIndex a, MachineIndex b) {
          return booking.running[a] < booking.running[b];
        });
      });
}

PrefillPlan power_of_two(const PlanInput& input) {
  return list_schedule(
      input, by_arrival(input),
      [&input](const PrefillJob& job, const std::vector<MachineIndex>& held, const Booking& booking) {
        const std::uint64_t lots = mixed(input.seed ^ mixed(job.arrival));
        const std::size_t first = std::uint32_t(lots) % held.size();
        if (held.size() == 1) return held[first];
        const std::size_t step = 1 + std::size_t(lots >> 32) % (held.size() - 1);  // Never the same one twice.
        const std::array pair{held[first], held[(first + step) % held.size()]};
        return first_done(input)(job, pair, booking);
      });
}

Result<DispatchPolicy> dispatch_policy(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DispatchPolicy>, 6> kPolicies{{
      {"lst_imh", lst_imh},
      {"edf", edf},
      {"fcfs", fcfs},
      {"round_robin", round_robin},
      {"least_loaded", least_loaded},
      {"power_of_two", power_of_two},
  }};
  std::string known;
  for (const auto& [known_name, policy] : kPolicies) {
    if (known_name == name) return policy;
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  }
  return make_error(ErrorCode::invalid_input,
                    "dispatch policy '" + std::string(name) + "' is not known; use one of " + known);
}

}  // namespace sangam
