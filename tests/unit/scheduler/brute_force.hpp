// Exact answers for small scheduling problems, by trying everything.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "actors/scheduler/plan.hpp"

namespace sangam::exact {

/// Whether a machine that is free at `free_at` can do the jobs of `mask` on time: earliest deadline first is
/// best. `jobs` come earliest deadline first.
inline bool all_on_time(const PrefillMachine& machine, const std::vector<PrefillJob>& jobs, std::uint32_t mask) {
  auto end = double(machine.free_at.time_since_epoch().count());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (!(mask >> j & 1U)) continue;
    end += machine.micros(jobs[j]);
    if (end > double(jobs[j].deadline.time_since_epoch().count())) return false;
  }
  return true;
}

/// The largest number of jobs among `allowed` that the machine can do on time.
inline int largest_subset(const PrefillMachine& machine, const std::vector<PrefillJob>& jobs,
                          std::uint32_t allowed) {
  int best = 0;
  for (std::uint32_t mask = 0; mask < (1U << jobs.size()); ++mask) {
    if ((mask & ~allowed) == 0 && std::popcount(mask) > best && all_on_time(machine, jobs, mask)) {
      best = std::popcount(mask);
    }
  }
  return best;
}

/// The largest number of jobs that all machines together can do on time: over machines, the sets of jobs that
/// can be served so far.
inline int optimum(const std::vector<PrefillMachine>& machines, const std::vector<PrefillJob>& jobs) {
  const std::uint32_t all = (1U << jobs.size()) - 1;
  std::vector<char> served(all + 1, 0);
  served[0] = 1;
  for (const PrefillMachine& machine : machines) {
    std::vector<char> next = served;
    for (std::uint32_t mask = 0; mask <= all; ++mask) {
      if (!all_on_time(machine, jobs, mask)) continue;
      const std::uint32_t others = all & ~mask;
      for (std::uint32_t before = others;; before = (before - 1) & others) {
        if (served[before]) next[before | mask] = 1;
        if (before == 0) break;
      }
    }
    served = std::move(next);
  }
  int best = 0;
  for (std::uint32_t mask = 0; mask <= all; ++mask) {
    if (served[mask]) best = std::max(best, std::popcount(mask));
  }
  return best;
}

/// How many jobs of a plan end on time when each machine runs its row, leaving out what it would end too late.
inline int on_time(const PrefillPlan& plan, const std::vector<PrefillMachine>& machines,
                   const std::vector<PrefillJob>& jobs) {
  int count = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    auto end = double(machines[i].free_at.time_since_epoch().count());
    for (JobIndex j : plan[i]) {
      const double done = end + machines[i].micros(jobs[j]);
      if (done > double(jobs[j].deadline.time_since_epoch().count())) continue;
      end = done;
      ++count;
    }
  }
  return count;
}

/// A random problem; the machines refer to `costs`.
struct Problem {
  std::vector<std::vector<PrefillCost>> costs;
  std::vector<PrefillMachine> machines;
  std::vector<PrefillJob> jobs;
};

struct Shape {
  int machines = 2;
  int jobs = 8;
  int models = 1;
  double load = 1.0;  ///< Sum of lengths over what the machines can do in the mean time left.
  bool same_speed = true;
};

/// Prefill times, deadlines and lengths as Janus's artefact and workloads have them: 67.27 ms + 0.0964 ms a
/// token; 2, 4 or 8 times (100 ms + 0.2 ms a token) to the deadline, scaled to the load; lengths with a long tail.
inline Problem random_problem(const Shape& shape, std::mt19937_64& random) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  Problem problem;
  for (int i = 0; i < shape.machines; ++i) {
    std::vector<PrefillCost> cost;
    for (int m = 0; m < shape.models; ++m) {
      const bool held = shape.models == 1 || between(0, 1) < 0.6;
      const double speed = shape.same_speed ? 1.0 : between(0.5, 2.0);
      cost.push_back(held ? PrefillCost{67'270.0 / speed, 96.4 / speed, 0.0} : PrefillCost{});
    }
    problem.costs.push_back(cost);
  }
  double work = 0.0, time_left = 0.0;
  std::vector<double> slo;
  for (int j = 0; j < shape.jobs; ++j) {
    PrefillJob job;
    job.tokens = Tokens(std::int64_t(std::min(32'000.0, 200.0 * std::pow(between(0.001, 1), -0.8))));
    job.model = ModelIndex(random() % std::uint64_t(shape.models));
    job.arrival = job.turn = std::uint64_t(j);
    problem.jobs.push_back(job);
    const auto n = double(job.tokens.count());
    slo.push_back(double(2U << random() % 3) * (100'000.0 + 200.0 * n));
    work += 67'270.0 + 96.4 * n;
    time_left += slo.back() / shape.jobs;
  }
  const double scale = work / (shape.machines * shape.load * time_left);
  for (std::size_t j = 0; j < slo.size(); ++j) {
    problem.jobs[j].deadline = Instant(Micros(std::int64_t(slo[j] * scale)));
  }
  std::sort(problem.jobs.begin(), problem.jobs.end(),
            [](const PrefillJob& a, const PrefillJob& b) { return a.deadline < b.deadline; });
  for (const auto& cost : problem.costs) {
    const Instant free_at(Micros(std::int64_t(between(0, 0.3) * time_left * scale)));
    problem.machines.push_back({free_at, 0, cost});
  }
  return problem;
}

}  // namespace sangam::exact
