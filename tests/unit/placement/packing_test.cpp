// Potentials, loads and bins against their definitions; packings against exhaustive search.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "actors/placement/policies.hpp"
#include "actors/placement/repair.hpp"
#include "actors/placement/search.hpp"
#include "tests/unit/placement/random_problems.hpp"

namespace sangam {
namespace {

using exact::kMixes;
using exact::Mix;
using exact::random_problem;

Shares random_shares(std::mt19937_64& random) { return {exact::draw(random), exact::draw(random), exact::draw(random)}; }

/// x - (|x|_1 / 3) 1, and its squared length: the definition of Phi.
double centred_length(const Shares& x) {
  const double mean = (x[0] + x[1] + x[2]) / 3.0;
  return std::pow(x[0] - mean, 2) + std::pow(x[1] - mean, 2) + std::pow(x[2] - mean, 2);
}

/// Piece by piece, for every set of items by its own.
Shares naive_load(const PackingProblem& problem, const std::vector<ItemIndex>& items) {
  Shares load{};
  std::set<std::uint32_t> pieces;
  for (const ItemIndex i : items) {
    for (std::size_t d = 0; d < 3; ++d) load[d] += problem.items[i].own[d];
    for (const std::uint32_t piece : problem.items[i].pieces) pieces.insert(piece);
  }
  for (const std::uint32_t piece : pieces) load[0] += problem.pieces[piece];
  return load;
}

bool is_feasible(const PackingProblem& problem, const std::vector<ItemIndex>& items) {
  const Shares load = naive_load(problem, items);
  return items.size() <= problem.models_max && *std::max_element(load.begin(), load.end()) <= 1.0 + 1e-8;
}

/// Every item is in one bin at most, and every bin fits.
void check_packing(const PackingProblem& problem, const Packing& packing, std::size_t placed) {
  std::set<ItemIndex> seen;
  for (const auto& items : packing) {
    CHECK(is_feasible(problem, items));
    for (const ItemIndex item : items) CHECK(seen.insert(item).second);
  }
  CHECK(seen.size() == placed);
}

std::size_t used(const Packing& packing) {
  return std::size_t(std::count_if(packing.begin(), packing.end(), [](const auto& items) { return !items.empty(); }));
}

/// The fewest bins, over all ways to put items one after another into a bin in use or a new one.
std::size_t fewest_bins(const PackingProblem& problem, Packing& bins, ItemIndex next, std::size_t best) {
  if (bins.size() >= best) return best;
  if (next == problem.items.size()) return bins.size();
  for (std::size_t b = 0; b < bins.size(); ++b) {
    bins[b].push_back(next);
    if (is_feasible(problem, bins[b])) best = fewest_bins(problem, bins, next + 1, best);
    bins[b].pop_back();
  }
  bins.push_back({next});
  best = fewest_bins(problem, bins, next + 1, best);
  bins.pop_back();
  return best;
}

}  // namespace

TEST_CASE("Phi is the squared length of what is left of a vector without its mean, for load and residual alike") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1'000; ++i) {
    const Shares load = random_shares(random);
    const Shares residual{1.0 - load[0], 1.0 - load[1], 1.0 - load[2]};
    CHECK(potential(load) == doctest::Approx(centred_length(load)));
    CHECK(potential(residual) == doctest::Approx(potential(load)));
  }
  CHECK(potential({0.4, 0.4, 0.4}) == doctest::Approx(0.0));
  CHECK(potential({1.0, 0.0, 0.0}) == doctest::Approx(2.0 / 3.0));
}

TEST_CASE("inserting v changes the potential by Phi(v) - 2 <r', v'>") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1'000; ++i) {
    const Shares residual = random_shares(random);
    const Shares v = random_shares(random);
    const Shares after{residual[0] - v[0], residual[1] - v[1], residual[2] - v[2]};
    CHECK(centred_length(after) - centred_length(residual) ==
          doctest::Approx(potential(v) - 2.0 * alignment(residual, v)));
  }
}

TEST_CASE("a bin's load has the union of segments, in whatever order models come and go") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    PackingProblem problem = random_problem(Mix::sharing, 10, random);
    problem.models_max = 10;
    Bins bins(problem);
    std::vector<ItemIndex> inside;
    for (int i = 0; i < 100; ++i) {
      const auto item = ItemIndex(random() % 10);
      const auto found = std::find(inside.begin(), inside.end(), item);
      if (found == inside.end()) {
        std::vector<ItemIndex> with = inside;
        with.push_back(item);
        const double more = naive_load(problem, with)[0] - naive_load(problem, inside)[0];
        CHECK(bins.marginal(0, item)[0] == doctest::Approx(more));
        CHECK(bins.fits(0, item) == is_feasible(problem, with));
        bins.put(0, item);
        inside = with;
      } else {
        bins.take(0, item);
        inside.erase(found);
      }
      const Shares load = naive_load(problem, inside);
      for (std::size_t d = 0; d < 3; ++d) CHECK(1.0 - bins.residual(0)[d] == doctest::Approx(load[d]));
    }
    for (const ItemIndex item : std::vector<ItemIndex>(inside)) bins.take(0, item);
    CHECK(bins.residual(0) == Shares{1.0, 1.0, 1.0});  // Exactly: nothing has drifted.
  }
}

TEST_CASE("a model goes to the bin with the largest <r', v'> that has room, and at a tie where it is") {
  PackingProblem problem;
  problem.items.resize(4);
  problem.items[0].own = {0.8, 0.1, 0.1};
  problem.items[1].own = {0.1, 0.8, 0.1};
  problem.items[2].own = {0.1, 0.8, 0.1};
  problem.items[3].own = {0.1, 0.6, 0.1};
  problem.kinds.resize(1);
  problem.bins.assign(4, 0);
  Bins bins(problem);
  bins.put(0, 1);
  bins.put(1, 0);
  CHECK(bins.choose(3, FitRule::aligned) == BinIndex{1});
  CHECK(bins.choose(3, FitRule::aligned, 1) == std::nullopt);
  problem.items[3].own = {0.1, 0.1, 0.1};
  problem.items[3].home = 2;
  Bins ties(problem);
  ties.put(1, 1);
  ties.put(2, 2);
  CHECK(ties.choose(3, FitRule::aligned) == BinIndex{2});
  problem.items[3].home = kNoBin;
  CHECK(ties.choose(3, FitRule::aligned) == BinIndex{1});
}

TEST_CASE("models that share weights attract each other") {
  PackingProblem problem;
  problem.pieces = {0.5};
  problem.items.resize(3);
  for (Item& item : problem.items) item.own = {0.1, 0.1, 0.1};
  problem.items[0].pieces = problem.items[2].pieces = {0};
  problem.items[0].family = problem.items[2].family = 0;
  problem.items[1].own = {0.1, 0.4, 0.4};
  problem.kinds.resize(1);
  problem.bins.assign(3, 0);
  Bins bins(problem);
  bins.put(0, 1);
  bins.put(1, 0);
  CHECK(bins.choose(2, FitRule::aligned) == BinIndex{1});
  bins.put(1, 2);
  CHECK(bins.residual(1)[0] == doctest::Approx(0.3));
}

TEST_CASE("a smaller worker's shares are larger, and a worker that does not know a model cannot take it") {
  PackingProblem problem;
  problem.items.resize(2);
  problem.items[0].own = {0.4, 0.1, 0.1};
  problem.items[1].own = {0.6, 0.1, 0.1};
  problem.kinds = {{2.0, {true, true}}, {1.0, {false, true}}};
  problem.bins = {0, 1};
  Bins bins(problem);
  CHECK(bins.fits(0, 0));
  CHECK_FALSE(bins.fits(0, 1));
  CHECK_FALSE(bins.fits(1, 0));
  CHECK(bins.unused_for(1) == BinIndex{1});
  bins.put(0, 0);
  CHECK(bins.residual(0)[0] == doctest::Approx(0.2));
}

TEST_CASE("whatever packs, everything that fits is placed and no bin holds too much") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const PackingProblem problem = random_problem(kMixes[seed % 4], 5 + random() % 80, random);
    const std::size_t count = problem.items.size();
    check_packing(problem, pack_anew(problem, 100'000), count);
    check_packing(problem, first_fit_decreasing(problem), count);
    check_packing(problem, periodic_repack_policy().pack(problem, 0), count);
    check_packing(problem, periodic_balance_policy().pack(problem, 0), count);
    CHECK(used(pack_anew(problem, 100'000)) >= bins_min(problem));
  }
}

namespace {

/// Workers that are alike, and items of a fifth of one's HBM with these rates.
PackingProblem problem_of_rates(std::size_t bins, const std::vector<double>& rates) {
  PackingProblem problem;
  problem.kinds.resize(1);
  problem.bins.assign(bins, 0);
  for (const double rate : rates) {
    Item& item = problem.items.emplace_back();
    item.own = {0.2, 0.0, 0.0};
    item.rate = rate;
  }
  return problem;
}

}  // namespace

TEST_CASE("balance takes the least rate over free HBM of all workers, repacking of those in use") {
  // 6 goes to the first; 3 to the second, 3 / 0.8 against 9 / 0.6; 2 there, 5 / 0.6 against 8 / 0.6; 2 back, 8 / 0.6
  // against 7 / 0.4.
  const PackingProblem problem = problem_of_rates(2, {6.0, 3.0, 2.0, 2.0});
  CHECK(periodic_balance_policy().pack(problem, 0) == Packing{{0, 3}, {1, 2}});
  CHECK(periodic_repack_policy().pack(problem, 0) == Packing{{0, 1, 2, 3}, {}});
}

TEST_CASE("balance keeps instances of one model apart and places no more of them than there are workers") {
  PackingProblem problem = problem_of_rates(2, {1.0, 1.0, 1.0, 9.0});
  for (ItemIndex i = 0; i < 3; ++i) problem.items[i].model = 7;
  problem.items[3].model = 8;
  CHECK(periodic_balance_policy().pack(problem, 0) == Packing{{3, 1}, {0}});
}

TEST_CASE("balance moves an instance only where its worker is half as much again under pressure") {
  // The last to come sees 5 / 0.6 at home, and 4 / 0.6 or 2.5 / 0.6 at the other.
  for (const double other : {3.0, 1.5}) {
    PackingProblem problem = problem_of_rates(2, {4.0, other, 1.0});
    problem.items[0].home = problem.items[2].home = 0;
    problem.items[1].home = 1;
    CHECK(periodic_balance_policy().pack(problem, 0) == (other == 3.0 ? Packing{{0, 2}, {1}} : Packing{{0}, {1, 2}}));
  }
}

TEST_CASE("small problems are packed into the fewest bins, as exhaustive search finds them") {
  std::size_t ours = 0;
  std::size_t fewest = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const PackingProblem problem = random_problem(kMixes[seed % 4], 9, random);
    Packing none;
    const std::size_t best = fewest_bins(problem, none, 0, 10);
    const std::size_t found = used(pack_anew(problem, 1'000'000));
    CHECK(bins_min(problem) <= best);
    CHECK(found == best);
    ours += found;
    fewest += best;
  }
  CHECK(ours == fewest);
}

TEST_CASE("an item that fits no worker is in no bin, and does not keep others out") {
  PackingProblem problem;
  problem.items.resize(3);
  for (Item& item : problem.items) item.own = {0.3, 0.3, 0.3};
  problem.items[1].own[2] = 1.1;
  problem.kinds.resize(1);
  problem.bins.assign(3, 0);
  const Packing packing = pack_anew(problem, 1'000);
  check_packing(problem, packing, 2);
  CHECK(used(packing) == 1);
}

TEST_CASE("a damaged bin gives away the part that lowers the potential most, and a sound one nothing") {
  PackingProblem problem;
  problem.items.resize(3);
  problem.items[0].own = {0.6, 0.1, 0.1};  // Left alone: all its skew is damage.
  problem.items[1].own = {0.1, 0.6, 0.1};
  problem.items[2].own = {0.1, 0.1, 0.6};
  problem.kinds.resize(1);
  problem.bins.assign(3, 0);
  Bins bins(problem);
  bins.put(0, 0);
  bins.put(1, 1);
  bins.put(1, 2);
  CHECK(bins.damage(0) == doctest::Approx(1.0));
  // Two skews of 0.5 in a plane at 120 degrees: Phi((0.2, 0.7, 0.7)) over twice Phi((0.1, 0.6, 0.1)).
  CHECK(bins.damage(1) == doctest::Approx(0.5));
  CHECK_FALSE(repair(bins, 1, 0.5 + 1e-6));
  CHECK(repair(bins, 0, 0.5));
  CHECK(bins.used() == 1);
  CHECK(bins.damage(1) == doctest::Approx(0.0));
}

TEST_CASE("a repair lowers bins or potential and keeps every bin feasible") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const PackingProblem problem = random_problem(kMixes[seed % 4], 30, random);
    Bins bins(problem, first_fit_decreasing(problem));
    const auto total = [&] {
      double sum = 0.0;
      for (const auto& items : bins.packing()) sum += centred_length(naive_load(problem, items));
      return sum;
    };
    const double before = total();
    const std::size_t used_before = bins.used();
    const bool has_changed = repair(bins, BinIndex(random() % used_before), 0.1);
    check_packing(problem, bins.packing(), 30);
    if (bins.used() == used_before) CHECK((total() < before) == has_changed);
    CHECK(bins.used() <= used_before);
  }
}

TEST_CASE("a bin that holds too much is relieved of what lets the rest fit") {
  PackingProblem problem;
  problem.items.resize(4);
  for (Item& item : problem.items) item.own = {0.4, 0.4, 0.4};
  problem.items[3].own = {0.1, 0.1, 0.1};
  problem.kinds.resize(1);
  problem.bins.assign(2, 0);
  Bins bins(problem, {{0, 1, 2, 3}, {}});
  CHECK(relieve(bins, 0).empty());
  check_packing(problem, bins.packing(), 4);
  problem.bins.assign(1, 0);
  Bins alone(problem, {{0, 1, 2, 3}});
  CHECK(relieve(alone, 0).size() == 1);
  check_packing(problem, alone.packing(), 3);
}

}  // namespace sangam
