// Moore-Hodgson against hand-made cases and against every subset of random small ones.
#include "actors/scheduler/on_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <random>

using namespace sangam;

namespace {

std::vector<TimedJob> jobs(std::initializer_list<std::pair<double, double>> deadline_and_length) {
  std::vector<TimedJob> result;
  for (const auto& [deadline, length] : deadline_and_length) {
    result.push_back({deadline, length, JobIndex(result.size())});
  }
  return result;
}

bool all_on_time(const std::vector<TimedJob>& jobs, std::uint32_t mask) {
  double end = 0.0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (!(mask >> j & 1U)) continue;
    end += jobs[j].length;
    if (end > jobs[j].deadline) return false;
  }
  return true;
}

int largest(const std::vector<TimedJob>& jobs) {
  int best = 0;
  for (std::uint32_t mask = 0; mask < (1U << jobs.size()); ++mask) {
    if (all_on_time(jobs, mask)) best = std::max(best, std::popcount(mask));
  }
  return best;
}

}  // namespace

TEST_CASE("a job that would make an earlier one late is dropped only if it is the longest") {
  // Of three jobs that need 2 + 9 + 3 by 14, 11 and 14, the long one must go only in the tighter case.
  CHECK(on_time_subset(jobs({{4, 2}, {11, 9}, {14, 3}})) == std::vector<JobIndex>{0, 1, 2});
  CHECK(on_time_subset(jobs({{4, 2}, {11, 9}, {13, 3}})) == std::vector<JobIndex>{0, 2});
}

TEST_CASE("a job that ends exactly at its deadline is on time, one microsecond later it is not") {
  CHECK(on_time_subset(jobs({{5, 5}})) == std::vector<JobIndex>{0});
  CHECK(on_time_subset(jobs({{5, 6}})).empty());
  CHECK(on_time_subset(jobs({{5, 5}, {10, 5}})) == std::vector<JobIndex>{0, 1});
  CHECK(on_time_subset(jobs({{5, 5}, {9, 5}})).size() == 1);
}

TEST_CASE("a deadline that has passed takes no job with it") {
  CHECK(on_time_subset(jobs({{-3, 1}, {0, 1}, {1, 1}})) == std::vector<JobIndex>{2});
  CHECK(on_time_subset({}).empty());
}

TEST_CASE("the subset is on time, ordered by deadline and as large as any of all subsets") {
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto count = 1 + random() % 10;
    std::vector<TimedJob> problem;
    for (JobIndex j = 0; j < count; ++j) {
      problem.push_back({double(random() % 60), double(1 + random() % 20), j});
    }
    std::sort(problem.begin(), problem.end(),
              [](const TimedJob& a, const TimedJob& b) { return a.deadline < b.deadline; });
    for (JobIndex j = 0; j < count; ++j) problem[j].job = j;

    const std::vector<JobIndex> subset = on_time_subset(problem);
    std::uint32_t mask = 0;
    for (JobIndex j : subset) mask |= 1U << j;
    REQUIRE(std::is_sorted(subset.begin(), subset.end()));
    REQUIRE(std::size_t(std::popcount(mask)) == subset.size());
    REQUIRE(all_on_time(problem, mask));
    REQUIRE(std::popcount(mask) == largest(problem));
  }
}
