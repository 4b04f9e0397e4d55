// Which worker a bin becomes, what that moves, and in which steps; and when it is worth it.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "actors/placement/consolidation.hpp"
#include "actors/placement/matching.hpp"
#include "actors/placement/moves.hpp"
#include "actors/placement/search.hpp"
#include "tests/unit/placement/random_problems.hpp"

namespace sangam {
namespace {

using exact::kMixes;
using exact::random_problem;
using Weights = std::vector<std::vector<double>>;

double sum_of(const Weights& weights, const std::vector<std::size_t>& columns) {
  double sum = 0.0;
  for (std::size_t r = 0; r < weights.size(); ++r) sum += weights[r][columns[r]];
  return sum;
}

/// Over all permutations of the columns.
double best_sum(const Weights& weights) {
  std::vector<std::size_t> columns(weights.front().size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  double best = 0.0;
  do best = std::max(best, sum_of(weights, columns));
  while (std::next_permutation(columns.begin(), columns.end()));
  return best;
}

Weights random_weights(std::mt19937_64& random, double density) {
  const std::size_t rows = 1 + random() % 6;
  Weights weights(rows, std::vector<double>(rows + random() % (8 - rows), 0.0));
  for (auto& row : weights) {
    for (double& weight : row) weight = exact::draw(random) < density ? double(1 + random() % 100) : 0.0;
  }
  return weights;
}

bool are_different(std::vector<std::size_t> columns) {
  std::sort(columns.begin(), columns.end());
  return std::adjacent_find(columns.begin(), columns.end()) == columns.end();
}

/// HBM of a worker with these items, by union of pieces.
double hbm(const PackingProblem& problem, const std::multiset<ItemIndex>& items) {
  double sum = 0.0;
  std::set<std::uint32_t> pieces;
  for (const ItemIndex i : items) {
    sum += problem.items[i].own[0];
    pieces.insert(problem.items[i].pieces.begin(), problem.items[i].pieces.end());
  }
  for (const std::uint32_t piece : pieces) sum += problem.pieces[piece];
  return sum;
}

/// Does what a lifecycle does with a plan: step by step, what comes is brought up; what is not planned leaves when
/// it is up where it belongs, or when its room is needed.
class Replay {
 public:
  Replay(const PackingProblem& problem, const Packing& present, const Packing& target, const Steps& steps)
      : problem_(problem), target_(target), steps_(steps) {
    for (const auto& items : present) there_.emplace_back(items.begin(), items.end());
    for (BinIndex b = 0; b < target.size(); ++b) {
      for (const ItemIndex item : target[b]) {
        if (there_[b].contains(item)) up_.insert(item);
      }
    }
  }

  /// How many models were down for a while, after all steps.
  std::size_t run() {
    std::int64_t last = 0;
    for (const auto& bin : steps_) {
      for (const std::int64_t step : bin) last = std::max(last, step);
    }
    std::set<ItemIndex> interrupted;
    for (std::int64_t step = 1; step <= last; ++step) {
      drop_replaced();
      bring(step, interrupted);
    }
    drop_replaced();
    for (BinIndex b = 0; b < target_.size(); ++b) {
      CHECK(there_[b] == std::multiset<ItemIndex>(target_[b].begin(), target_[b].end()));
    }
    return interrupted.size();
  }

 private:
  [[nodiscard]] bool is_planned(BinIndex bin, ItemIndex item) const {
    return std::find(target_[bin].begin(), target_[bin].end(), item) != target_[bin].end();
  }
  void drop_replaced() {
    for (BinIndex b = 0; b < there_.size(); ++b) {
      std::erase_if(there_[b], [&](ItemIndex item) { return up_.contains(item) && !is_planned(b, item); });
    }
  }
  void bring(std::int64_t step, std::set<ItemIndex>& interrupted) {
    std::vector<ItemIndex> came;
    for (BinIndex b = 0; b < target_.size(); ++b) {
      for (std::size_t p = 0; p < target_[b].size(); ++p) {
        if (steps_[b][p] != step) continue;
        came.push_back(target_[b][p]);
        there_[b].insert(target_[b][p]);
      }
      while (hbm(problem_, there_[b]) > 1.0 + 1e-8) {
        const auto leaver = std::find_if(there_[b].begin(), there_[b].end(),
                                         [&](ItemIndex item) { return !is_planned(b, item); });
        REQUIRE(leaver != there_[b].end());  // Else the worker would have been asked for too much.
        interrupted.insert(*leaver);
        there_[b].erase(leaver);
      }
    }
    up_.insert(came.begin(), came.end());
  }

  const PackingProblem& problem_;
  const Packing& target_;
  const Steps& steps_;
  std::vector<std::multiset<ItemIndex>> there_;
  std::set<ItemIndex> up_;
};

Packing shuffled_packing(const PackingProblem& problem, std::mt19937_64& random) {
  std::vector<ItemIndex> order(problem.items.size());
  std::iota(order.begin(), order.end(), ItemIndex{0});
  std::shuffle(order.begin(), order.end(), random);
  Bins bins(problem);
  for (const ItemIndex item : order) {
    auto bin = bins.choose(item, FitRule::tight);
    if (!bin) bin = bins.unused_for(item);
    if (bin) bins.put(*bin, item);
  }
  return bins.packing();
}

PackingProblem small_problem(std::vector<Shares> needs, std::size_t bins) {
  PackingProblem problem;
  for (const Shares& need : needs) {
    Item& item = problem.items.emplace_back();
    item.own = need;
    item.weights = need[0];
  }
  problem.kinds.resize(1);
  problem.bins.assign(bins, 0);
  return problem;
}

}  // namespace

TEST_CASE("an assignment has the largest sum of all permutations") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Weights weights = random_weights(random, 0.7);
    const auto columns = best_assignment(weights);
    CHECK(are_different(columns));
    CHECK(sum_of(weights, columns) == doctest::Approx(best_sum(weights)));
  }
}

TEST_CASE("a match is the best one where groups are small, and at least half of it where they are not") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Weights weights = random_weights(random, 0.3);
    std::vector<Overlap> overlaps;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      for (std::size_t c = 0; c < weights[r].size(); ++c) {
        if (weights[r][c] > 0.0) overlaps.push_back({r, c, weights[r][c]});
      }
    }
    const double best = best_sum(weights);
    const auto exactly = match(weights.size(), weights[0].size(), overlaps, 100);
    const auto greedily = match(weights.size(), weights[0].size(), overlaps, 0);
    CHECK(are_different(exactly));
    CHECK(are_different(greedily));
    CHECK(sum_of(weights, exactly) == doctest::Approx(best));
    CHECK(sum_of(weights, greedily) >= best / 2.0);
  }
}

TEST_CASE("steps from any packing to any other never ask a worker for more than it has, and end there") {
  std::size_t moves = 0;
  std::size_t interrupted = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const PackingProblem problem = random_problem(kMixes[seed % 4], 4 + random() % 24, random);
    Packing present = shuffled_packing(problem, random);
    const Packing target = shuffled_packing(problem, random);
    for (auto& items : present) {
      if (!items.empty() && random() % 4 == 0) items.pop_back();  // Not up yet.
    }
    const Steps steps = steps_between(problem, present, target);
    Replay replay(problem, present, target, steps);
    interrupted += replay.run();
    for (const auto& bin : steps) moves += std::size_t(std::count_if(bin.begin(), bin.end(), [](auto s) { return s > 0; }));
  }
  CHECK(moves > 1'000);
  CHECK(interrupted < moves / 4);
}

TEST_CASE("models that change places where there is room for neither first are interrupted one at a time") {
  const PackingProblem problem = small_problem({{0.6, 0.1, 0.1}, {0.6, 0.2, 0.2}}, 2);
  const Packing present{{0}, {1}};
  const Packing target{{1}, {0}};
  const Steps steps = steps_between(problem, present, target);
  CHECK(steps == Steps{{1}, {2}});  // The less loaded one gives way, and comes back after the other.
  Replay replay(problem, present, target, steps);
  CHECK(replay.run() == 1);
}

TEST_CASE("a model that moves is up before it leaves, and what waits for its room comes a step later") {
  const PackingProblem problem = small_problem({{0.6, 0.1, 0.1}, {0.6, 0.2, 0.2}}, 3);
  const Steps steps = steps_between(problem, {{0}, {1}, {}}, {{1}, {}, {0}});
  CHECK(steps == Steps{{2}, {}, {1}});
}

TEST_CASE("a new packing keeps its bins where their models are") {
  const PackingProblem problem = small_problem({{0.5, 0, 0}, {0.3, 0, 0}, {0.2, 0, 0}, {0.4, 0, 0}}, 4);
  const Packing present{{0, 1}, {2}, {3}, {}};
  CHECK(named_like(problem, {{3, 2}, {1}, {0}, {}}, present, 100) == Packing{{0}, {1}, {3, 2}, {}});
}

TEST_CASE("bytes that are shared and there are not moved") {
  PackingProblem problem = small_problem({{0.1, 0, 0}, {0.1, 0, 0}, {0.1, 0, 0}}, 2);
  problem.pieces = {0.3};
  for (Item& item : problem.items) {
    item.pieces = {0};
    item.weights = 0.4;
  }
  CHECK(weights_moved(problem, {{0}, {1, 2}}, {{0, 1, 2}, {}}) == doctest::Approx(0.2));
  CHECK(weights_moved(problem, {{}, {0, 1, 2}}, {{0, 1}, {2}}) == doctest::Approx(0.5));
  CHECK(weights_moved(problem, {{0}, {1, 2}}, {{0}, {1, 2}}) == 0.0);
}

TEST_CASE("models move only where the workers saved outweigh the bytes") {
  const PackingProblem problem = small_problem({{0.4, 0.1, 0.1}, {0.4, 0.1, 0.1}}, 2);
  const Bins bins(problem, {{0}, {1}});
  ConsolidationTerms terms;
  terms.effort = 1'000;
  terms.pools_per_worker_saved = 0.5;
  const auto packing = consolidated(bins, potential_policy(), terms);
  REQUIRE(packing.has_value());
  CHECK(weights_moved(problem, bins.packing(), *packing) == doctest::Approx(0.4));
  terms.pools_per_worker_saved = 0.3;
  CHECK_FALSE(consolidated(bins, potential_policy(), terms).has_value());
  CHECK_FALSE(consolidated(bins, static_policy(), terms).has_value());
}

TEST_CASE("the policies are found by name, and an unknown name is refused with the known ones") {
  for (const char* name : {"potential", "first_fit_decreasing", "static", "periodic_repack", "periodic_balance"}) {
    CHECK(placement_policy(name).value().name == name);
  }
  const auto unknown = placement_policy("best");
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().context.find("periodic_repack") != std::string::npos);
}

}  // namespace sangam
