// The dispatch policies: LST-IMH against exact optima, the others against their definitions.
#include "actors/scheduler/policies.hpp"

#include <doctest/doctest.h>

#include <array>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "actors/scheduler/lst_imh.hpp"
#include "tests/unit/scheduler/brute_force.hpp"

using namespace sangam;
using sangam::exact::Problem;
using sangam::exact::Shape;

namespace {

const std::vector<PrefillCost> kOneMicroPerToken{{0.0, 1.0, 0.0}};

PrefillMachine machine(std::int64_t free_at, std::int64_t running = 0) {
  return {Instant(Micros(free_at)), running, kOneMicroPerToken};
}

PrefillJob job(std::int64_t tokens, std::int64_t deadline, std::uint64_t arrival = 0) {
  return {Instant(Micros(deadline)), Tokens(tokens), 0, arrival, arrival};
}

PrefillJob unhurried(std::int64_t tokens, std::uint64_t arrival = 0) {
  return {Instant::max(), Tokens(tokens), 0, arrival, arrival};
}

int planned(const PrefillPlan& plan) {
  return std::accumulate(plan.begin(), plan.end(), 0, [](int sum, const auto& row) { return sum + int(row.size()); });
}

bool each_at_most_once(const PrefillPlan& plan) {
  std::set<JobIndex> seen;
  for (const auto& row : plan) {
    for (JobIndex j : row) {
      if (!seen.insert(j).second) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("the machine that is free last chooses first, so the jobs that cannot wait are left to the others") {
  // One of the jobs is due before the late machine is free; the other can go to either.
  const std::vector jobs{job(10, 15), job(10, 60)};
  const std::vector machines{machine(0), machine(40)};
  CHECK(lst_imh_sets({jobs, machines}) == PrefillPlan{{0}, {1}});
}

TEST_CASE("a machine takes its whole set, in the order of deadlines") {
  const std::vector jobs{job(10, 20), job(10, 30), job(50, 40), job(10, 41)};
  CHECK(lst_imh_sets({jobs, std::vector{machine(10)}}) == PrefillPlan{{0, 1, 3}});
}

TEST_CASE("jobs that no machine can make are in no plan of LST-IMH") {
  const std::vector jobs{job(30, 20), job(5, 20)};
  CHECK(lst_imh({jobs, std::vector{machine(10), machine(0)}}) == PrefillPlan{{}, {1}});
}

TEST_CASE("an idle machine takes jobs over from one that is busy, earliest deadline first") {
  const std::vector jobs{job(10, 900), job(10, 910), job(10, 920), job(10, 930)};
  const std::vector machines{machine(0), machine(15)};
  CHECK(lst_imh_sets({jobs, machines}) == PrefillPlan{{}, {0, 1, 2, 3}});
  // By hand: job 0 ends at 10 rather than 25, job 1 at 20 rather than 25, job 2 at 25 rather than 30, job 3 at 30.
  CHECK(lst_imh({jobs, machines}) == PrefillPlan{{0, 1, 3}, {2}});
}

TEST_CASE("jobs without a deadline come after those with one, where they end first, in their order") {
  const std::vector jobs{job(10, 12), unhurried(5), unhurried(7)};
  const std::vector machines{machine(0), machine(4)};
  // Machine 1 cannot make job 0; job 1 ends there at 9, job 2 there at 16 or behind job 0 at 17.
  CHECK(lst_imh({jobs, machines}) == PrefillPlan{{0}, {1, 2}});
}

TEST_CASE("a job goes only to a machine that holds its model") {
  const std::vector<PrefillCost> holds_second{PrefillCost{}, {0.0, 1.0, 0.0}};
  std::vector jobs{job(5, 100), job(5, 101), unhurried(5, 2)};
  jobs[1].model = 1;
  jobs[2].model = 1;
  const std::vector<PrefillMachine> machines{machine(0), {Instant(Micros(50)), 0, holds_second}};
  for (const char* name : {"lst_imh", "edf", "fcfs", "round_robin", "least_loaded", "power_of_two"}) {
    CAPTURE(name);
    CHECK(dispatch_policy(name).value()({jobs, machines}) == PrefillPlan{{0}, {1, 2}});
  }
}

TEST_CASE("each set of LST-IMH is a largest one of what the machines before it left") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Shape shape{3, 9, seed % 2 ? 1 : 3, 0.5 + double(seed % 6) * 0.5, seed % 4 < 2};
    const Problem problem = exact::random_problem(shape, random);
    const PrefillPlan plan = lst_imh_sets({problem.jobs, problem.machines});
    std::vector<std::size_t> order{0, 1, 2};
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return problem.machines[a].free_at > problem.machines[b].free_at;
    });
    std::uint32_t left = (1U << problem.jobs.size()) - 1;
    for (std::size_t i : order) {
      REQUIRE(int(plan[i].size()) == exact::largest_subset(problem.machines[i], problem.jobs, left));
      for (JobIndex j : plan[i]) left &= ~(1U << j);
    }
  }
}

TEST_CASE("LST-IMH reaches half of the exact optimum always and nearly all of it on average") {
  const std::array<const char*, 6> names{"lst_imh", "edf", "fcfs", "round_robin", "least_loaded", "power_of_two"};
  std::array<double, 6> share{};
  double sets_share = 0.0, worst = 1.0;
  const int instances = 1000;
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Shape shape{2 + int(seed % 2), 8 + int(seed % 2), 1, 0.5 + 2.5 * double(seed) / instances, true};
    const Problem problem = exact::random_problem(shape, random);
    const PlanInput input{problem.jobs, problem.machines, Instant::max(), seed};
    const int best = exact::optimum(problem.machines, problem.jobs);
    for (std::size_t p = 0; p < names.size(); ++p) {
      const PrefillPlan plan = dispatch_policy(names[p]).value()(input);
      REQUIRE(each_at_most_once(plan));
      const int count = exact::on_time(plan, problem.machines, problem.jobs);
      REQUIRE(count <= best);
      share[p] += best == 0 ? 1.0 : double(count) / best;
    }
    const PrefillPlan sets = lst_imh_sets(input);
    const int count = exact::on_time(sets, problem.machines, problem.jobs);
    REQUIRE(count == planned(sets));
    REQUIRE(2 * count >= best);
    sets_share += best == 0 ? 1.0 : double(count) / best;
    if (best > 0) worst = std::min(worst, double(count) / best);
  }
  MESSAGE("mean share of the optimum over 1000 instances, loads 0.5 to 3:");
  for (std::size_t p = 0; p < names.size(); ++p) MESSAGE(std::string(names[p]), " ", share[p] / instances);
  MESSAGE("the sets of lst_imh alone ", sets_share / instances, ", worst ", worst);
  CHECK(share[0] / instances >= 0.995);
  CHECK(share[0] >= sets_share);
}

TEST_CASE("the bound of half holds also for machines of different speed and with different models") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Shape shape{3, 8, 2, 0.5 + double(seed % 6) * 0.5, false};
    const Problem problem = exact::random_problem(shape, random);
    const PlanInput input{problem.jobs, problem.machines};
    const int best = exact::optimum(problem.machines, problem.jobs);
    const PrefillPlan sets = lst_imh_sets(input);
    const int count = exact::on_time(sets, problem.machines, problem.jobs);
    REQUIRE(count == planned(sets));
    REQUIRE(2 * count >= best);
    const PrefillPlan whole = lst_imh(input);
    REQUIRE(each_at_most_once(whole));
    REQUIRE(exact::on_time(whole, problem.machines, problem.jobs) == planned(whole));
    REQUIRE(planned(whole) >= count);
  }
}

TEST_CASE("no machine is left idle by LST-IMH while a planned job would end sooner on it") {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Problem problem = exact::random_problem({3, 8, 1, 0.2 + double(seed % 8) * 0.2, false}, random);
    const PrefillPlan plan = lst_imh({problem.jobs, problem.machines});
    for (std::size_t idle = 0; idle < plan.size(); ++idle) {
      if (!plan[idle].empty()) continue;
      for (std::size_t i = 0; i < plan.size(); ++i) {
        auto end = double(problem.machines[i].free_at.time_since_epoch().count());
        for (JobIndex j : plan[i]) {
          end += problem.machines[i].micros(problem.jobs[j]);
          const auto idle_from = double(problem.machines[idle].free_at.time_since_epoch().count());
          REQUIRE(idle_from + problem.machines[idle].micros(problem.jobs[j]) >= end);
        }
      }
    }
  }
}

TEST_CASE("edf takes the earliest deadline first and drops nothing, fcfs the first that came") {
  const std::vector jobs{job(10, 5, 2), job(10, 50, 0), unhurried(10, 1)};
  CHECK(edf({jobs, std::vector{machine(0)}}) == PrefillPlan{{0, 1, 2}});
  CHECK(fcfs({jobs, std::vector{machine(0)}}) == PrefillPlan{{1, 2, 0}});
}

TEST_CASE("round robin goes by turns and does not look at the load") {
  const std::vector jobs{unhurried(10, 0), unhurried(10, 1), unhurried(10, 2), unhurried(10, 3)};
  CHECK(round_robin({jobs, std::vector{machine(1000), machine(0), machine(0)}}) == PrefillPlan{{0, 3}, {1}, {2}});
}

TEST_CASE("least loaded counts requests, not time") {
  const std::vector jobs{unhurried(10, 0), unhurried(10, 1)};
  CHECK(least_loaded({jobs, std::vector{machine(0, 2), machine(1000, 1)}}) == PrefillPlan{{1}, {0}});
}

TEST_CASE("power of two takes the sooner of two machines, the same two in every plan") {
  std::vector<PrefillMachine> machines;
  for (std::int64_t i = 0; i < 16; ++i) machines.push_back(machine(i * 1000));
  std::set<std::size_t> chosen;
  double place = 0.0;
  for (std::uint64_t arrival = 0; arrival < 4000; ++arrival) {
    const std::vector jobs{unhurried(1, arrival)};
    const PrefillPlan plan = power_of_two({jobs, machines, Instant::max(), 7});
    REQUIRE(plan == power_of_two({jobs, machines, Instant::max(), 7}));
    const auto row = std::find_if(plan.begin(), plan.end(), [](const auto& r) { return !r.empty(); });
    const auto i = std::size_t(row - plan.begin());
    chosen.insert(i);
    place += double(i) / 4000;
  }
  // The smaller of two different numbers out of 0..15, evenly drawn, is 14/3 on average, and never 15.
  CHECK(place == doctest::Approx(14.0 / 3.0).epsilon(0.03));
  CHECK(chosen.size() == 15);
}

TEST_CASE("a policy that is not known is refused with the names that are") {
  const auto unknown = dispatch_policy("lst-imh");
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().code == ErrorCode::invalid_input);
  CHECK(unknown.error().context ==
        "dispatch policy 'lst-imh' is not known; use one of lst_imh, edf, fcfs, round_robin, least_loaded, "
        "power_of_two");
}
