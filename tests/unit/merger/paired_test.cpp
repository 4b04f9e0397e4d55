// Coverage of the bound is summed over all tables of a small task, not sampled; the sequential test is simulated.
#include "actors/merger/evaluation/paired.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

namespace sangam::merging {
namespace {

double log_choose(std::int64_t items, std::int64_t lost, std::int64_t won) {
  return std::lgamma(double(items + 1)) - std::lgamma(double(lost + 1)) - std::lgamma(double(won + 1)) -
         std::lgamma(double(items - lost - won + 1));
}

double log_power(double base, std::int64_t exponent) { return exponent == 0 ? 0.0 : double(exponent) * std::log(base); }

struct Changes {
  double lost;
  double won;
};

double chance(std::int64_t items, std::int64_t lost, std::int64_t won, const Changes& changes) {
  return std::exp(log_choose(items, lost, won) + log_power(changes.lost, lost) + log_power(changes.won, won) +
                  log_power(1.0 - changes.lost - changes.won, items - lost - won));
}

/// Bounds of all tables of a task of so many items.
std::vector<std::vector<double>> all_bounds(std::int64_t items, double alpha) {
  std::vector<std::vector<double>> bounds(std::size_t(items) + 1);
  for (std::int64_t lost = 0; lost <= items; ++lost) {
    for (std::int64_t won = 0; won + lost <= items; ++won) {
      bounds[std::size_t(lost)].push_back(drop_bound({items, lost, won}, alpha));
    }
  }
  return bounds;
}

double coverage(const std::vector<std::vector<double>>& bounds, const Changes& changes) {
  const auto items = std::int64_t(bounds.size()) - 1;
  const double drop = 100.0 * (changes.lost - changes.won);
  double sum = 0.0;
  for (std::int64_t lost = 0; lost <= items; ++lost) {
    for (std::int64_t won = 0; won + lost <= items; ++won) {
      if (drop <= bounds[std::size_t(lost)][std::size_t(won)]) sum += chance(items, lost, won, changes);
    }
  }
  return sum;
}

struct Played {
  double within = 0.0;  ///< Share of the runs,
  double beyond = 0.0;
  double items = 0.0;  ///< and of the items used.
};

Played play(std::int64_t items, const Changes& changes, const DropBudget& budget, int runs) {
  std::mt19937_64 random(20240612);
  Played played;
  for (int run = 0; run < runs; ++run) {
    SequentialDropTest test(budget);
    std::int64_t used = 0;
    while (used < items && test.verdict() == DropVerdict::open) {
      const double draw = double(random() >> 11) * 0x1p-53;
      const bool lost = draw < changes.lost, won = !lost && draw < changes.lost + changes.won;
      test.note(!won, !lost);
      ++used;
    }
    played.within += test.verdict() == DropVerdict::within ? 1.0 / runs : 0.0;
    played.beyond += test.verdict() == DropVerdict::beyond ? 1.0 / runs : 0.0;
    played.items += double(used) / double(items) / runs;
  }
  return played;
}

struct Verdicts {
  double within = 0.0;  ///< Chances.
  double beyond = 0.0;
};

/// Over all sequences of so many further items.
Verdicts follow(const SequentialDropTest& test, const Changes& changes, int items) {
  if (test.verdict() == DropVerdict::within) return {1.0, 0.0};
  if (test.verdict() == DropVerdict::beyond) return {0.0, 1.0};
  Verdicts sum;
  if (items == 0) return sum;
  const auto add = [&](bool right_before, bool right_after, double weight) {
    auto next = test;
    next.note(right_before, right_after);
    const auto verdicts = follow(next, changes, items - 1);
    sum.within += weight * verdicts.within;
    sum.beyond += weight * verdicts.beyond;
  };
  add(true, false, changes.lost);
  add(false, true, changes.won);
  add(true, true, 1.0 - changes.lost - changes.won);
  return sum;
}

}  // namespace

TEST_CASE("pairs are counted by what changed") {
  const auto counts = count_pairs({true, true, false, false, true}, {true, false, true, false, false});
  CHECK(counts.items == 5);
  CHECK(counts.lost == 2);
  CHECK(counts.won == 1);
  CHECK(counts.right_before == 3);
  CHECK(counts.drop() == doctest::Approx(20.0));
  CHECK(PairedCounts{}.drop() == 0.0);
}

TEST_CASE("the bound holds with the promised certainty whatever share of the items changes") {
  for (const double alpha : {0.05, 0.2}) {
    for (const std::int64_t items : {1, 4, 25}) {
      const auto bounds = all_bounds(items, alpha);
      double worst = 1.0;
      for (int lost = 0; lost <= 40; ++lost) {
        for (int won = 0; won + lost <= 40; ++won) worst = std::min(worst, coverage(bounds, {lost / 40.0, won / 40.0}));
      }
      INFO("alpha " << alpha << ", items " << items);
      CHECK(worst >= 1.0 - alpha);
      if (items > 1) CHECK(worst <= 1.0 - alpha * 0.6);  // It does not buy that by promising nothing.
    }
  }
}

TEST_CASE("the bound of a change without losses or gains is close to the exact one of a single proportion") {
  // Clopper and Pearson: 1 - alpha^(1 / items), in points; the unknown chance to win costs the rest.
  for (const std::int64_t items : {20, 150, 1273}) {
    const double single = 100.0 * (1.0 - std::pow(0.05, 1.0 / double(items)));
    const double bound = drop_bound({items, 0, 0}, 0.05);
    CHECK(bound >= single);
    CHECK(bound <= 1.1 * single);
  }
}

TEST_CASE("the bound of many changes agrees with the normal approximation") {
  // 2 % changed of 1273: 100 (0 + 1.645 sqrt(26)) / 1273 = 0.659 points.
  CHECK(drop_bound({1273, 13, 13}, 0.05) == doctest::Approx(0.659).epsilon(0.15));
  // 100 (100 + 1.645 sqrt(300 - 100^2 / 2000)) / 2000 = 6.41 points.
  CHECK(drop_bound({2000, 200, 100}, 0.05) == doctest::Approx(6.41).epsilon(0.02));
  // A gain is told from nothing: 100 (-60 + 1.645 sqrt(140)) / 1000 = -4.05 points.
  CHECK(drop_bound({1000, 40, 100}, 0.05) == doctest::Approx(-4.05).epsilon(0.08));
}

TEST_CASE("the bound rises with lost items and falls with won ones and with alpha") {
  for (std::int64_t changed = 0; changed < 12; ++changed) {
    CHECK(drop_bound({100, changed + 1, 3}, 0.05) > drop_bound({100, changed, 3}, 0.05));
    CHECK(drop_bound({100, 3, changed + 1}, 0.05) < drop_bound({100, 3, changed}, 0.05));
  }
  CHECK(drop_bound({100, 5, 3}, 0.1) < drop_bound({100, 5, 3}, 0.05));
  CHECK(drop_bound({}, 0.05) == 100.0);
  CHECK(drop_bound({7, 7, 0}, 0.05) == doctest::Approx(100.0));
}

TEST_CASE("the sequential test stops early at two points of budget and two percent of changes") {
  // A constant bet at the best stake decides 97 % of the runs with 33 % of the items.
  const auto played = play(1273, {0.01, 0.01}, {.points = 2.0, .alpha = 0.05}, 2000);
  CHECK(played.within >= 0.94);
  CHECK(played.items <= 0.45);
  CHECK(played.beyond <= 0.002);
  const auto broken = play(400, {0.14, 0.01}, {.points = 2.0, .alpha = 0.05}, 2000);
  CHECK(broken.beyond >= 0.99);
  CHECK(broken.items <= 0.25);
}

TEST_CASE("the sequential test errs no more often than alpha though it looks after every item") {
  const DropBudget budget = {.points = 2.0, .alpha = 0.1};
  for (const double won : {0.0, 0.02}) {
    // On the border neither verdict may be more frequent; 1000 runs, three deviations: 0.1 + 0.03.
    const auto border = play(2000, {won + 0.02, won}, budget, 1000);
    INFO("won " << won);
    CHECK(border.within <= 0.13);
    CHECK(border.beyond <= 0.13);
    CHECK(play(2000, {won + 0.03, won}, budget, 1000).within <= 0.13);
    CHECK(play(2000, {won + 0.01, won}, budget, 1000).beyond <= 0.13);
  }
  CHECK(play(2000, {0.02, 0.0}, budget, 1000).within >= 0.02);  // The border is where it errs.
}

TEST_CASE("over all sequences of ten items no verdict is wrong more often than alpha") {
  // At the border both verdicts are bound; large budgets and alphas let ten items decide.
  for (const double alpha : {0.2, 0.5}) {
    const DropBudget budget = {.points = 30.0, .alpha = alpha};
    for (const double won : {0.0, 0.1, 0.35}) {
      const auto verdicts = follow(SequentialDropTest(budget), {won + 0.3, won}, 10);
      INFO("alpha " << alpha << ", won " << won);
      CHECK(verdicts.within <= alpha);
      CHECK(verdicts.beyond <= alpha);
      CHECK(verdicts.within + verdicts.beyond > 0.05);
    }
  }
}

TEST_CASE("few items cannot show that a drop is within its budget, even if none changes") {
  SequentialDropTest test({.points = 2.0, .alpha = 0.05});
  std::int64_t items = 1;
  while (test.note(items % 2 == 0, items % 2 == 0) == DropVerdict::open) ++items;
  CHECK(test.verdict() == DropVerdict::within);
  // The boldest bet without a debt pays (1 - 0.02)^-1 an item: no bet can do it in less than ln 20 / -ln 0.98 = 149.
  CHECK(items >= 149);
  CHECK(items <= 210);
  CHECK(test.note(true, false) == DropVerdict::within);  // The first verdict stays.
}

}  // namespace sangam::merging
