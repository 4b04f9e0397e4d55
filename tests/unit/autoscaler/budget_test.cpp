// Shares by hand and by trying all: guarantees, largest remainders, and the most requests in time.
#include "actors/autoscaler/budget.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace sangam {
namespace {

Claim claim(std::int64_t prefill, std::int64_t decode, double rate = 1.0) { return {{prefill, decode}, rate, {}, {}, {}}; }

std::int64_t total(const std::vector<Need>& given) {
  return std::accumulate(given.begin(), given.end(), std::int64_t{0},
                         [](std::int64_t sum, const Need& need) { return sum + need.total(); });
}

TEST_CASE("with enough for all, everyone gets what he needs") {
  const std::vector<Claim> claims{claim(3, 1), claim(5, 2)};
  CHECK(proportional(claims, 11) == std::vector<Need>{{3, 1}, {5, 2}});
  CHECK(marginal(claims, 12) == std::vector<Need>{{3, 1}, {5, 2}});
}

TEST_CASE("proportional: guarantees first, then shares, then the largest remainders") {
  // 2 each for three models leave 6 of 12 for wishes of 8, 3 and 1: 4, 1.5 and 0.5, the halves to the first of equals.
  const std::vector<Claim> claims{claim(9, 1), claim(4, 1), claim(2, 1)};
  const std::vector<Need> given = proportional(claims, 12);
  CHECK(given[0].total() == 6);
  CHECK(given[1].total() == 4);
  CHECK(given[2].total() == 2);
  CHECK(given[0] == Need{5, 1});  // As its need is divided: nine tenths, but one to decode.
}

TEST_CASE("where not everyone can have one of each kind, the busiest do") {
  const std::vector<Claim> claims{claim(2, 1, 5.0), claim(2, 1, 50.0), claim(2, 1, 0.1)};
  const std::vector<Need> given = proportional(claims, 5);
  CHECK(given[2].total() == 0);
  CHECK(given[0].total() >= 2);
  CHECK(given[1].total() >= 2);
  CHECK(total(given) == 5);
}

TEST_CASE("random claims: never more than there is or than was asked, nothing left over that anyone wants") {
  std::mt19937 random(1);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<Claim> claims;
    for (unsigned i = 0; i < 1 + random() % 8; ++i) {
      claims.push_back(claim(1 + random() % 9, 1 + random() % 3, 1.0 + double(random() % 100)));
    }
    const std::int64_t workers = random() % 40;
    for (const BudgetRule rule : {proportional, marginal}) {
      const std::vector<Need> given = rule(claims, workers);
      std::int64_t wanted = 0, more = 0;
      for (std::size_t i = 0; i < claims.size(); ++i) {
        wanted += claims[i].need.total();
        CHECK(given[i].total() <= claims[i].need.total());
        if (given[i].total() > 0) CHECK(std::min(given[i].prefill, given[i].decode) >= 1);
        if (given[i].total() >= 2) more += claims[i].need.total() - given[i].total();
      }
      CHECK(total(given) <= workers);
      if (total(given) < std::min(workers, wanted) && more > 0) CHECK(total(given) == workers);
    }
  }
}

/// All ways to add `left` prefill workers to one each; concave curves make the greedy way the best.
double best_of_all(const std::vector<Claim>& claims, std::size_t i, std::int64_t left) {
  if (i == claims.size()) return 0.0;
  double best = 0.0;
  for (std::int64_t extra = 0; extra <= std::min(left, claims[i].need.prefill - 1); ++extra) {
    const double own = claims[i].requests_per_second * claims[i].prefill_attainment[std::size_t(extra)];
    best = std::max(best, own + best_of_all(claims, i + 1, left - extra));
  }
  return best;
}

TEST_CASE("marginal serves the most requests in time that any division could") {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<double>> curves(3);
    std::vector<Claim> claims;
    for (auto& curve : curves) {
      double value = 0.0, gain = 0.4 * uniform(random);
      for (int m = 0; m < 5; ++m, gain *= uniform(random)) curve.push_back(value += gain);
      claims.push_back({{5, 1}, 1.0 + 20.0 * uniform(random), curve, {}, {}});
    }
    const std::int64_t extra = 1 + random() % 8;
    const std::vector<Need> given = marginal(claims, 6 + extra);
    double served = 0.0;
    for (std::size_t i = 0; i < 3; ++i) {
      served += claims[i].requests_per_second * curves[i][std::size_t(given[i].prefill - 1)];
    }
    CHECK(served == doctest::Approx(best_of_all(claims, 0, extra)));
  }
}

}  // namespace
}  // namespace sangam
