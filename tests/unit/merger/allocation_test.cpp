// The cheapest forms at given prices against trying all of them.
#include "actors/merger/search/allocation.hpp"

#include <doctest/doctest.h>

#include <random>

#include "actors/merger/search/price_search.hpp"

namespace sangam::merging {
namespace {

/// Groups of three sites, one of each of three models, each with two variants and a few options.
PoolOptions random_pool(std::uint64_t seed, int groups) {
  std::mt19937_64 random(seed);
  PoolOptions pool;
  pool.models = 3;
  for (int g = 0; g < groups; ++g) {
    SlotGroup group;
    for (std::uint32_t m = 0; m < 3; ++m) {
      group.sites.push_back(SiteIndex(pool.model_of.size()));
      pool.model_of.push_back(m);
    }
    for (std::uint32_t v = 0; v < 2; ++v) {
      GroupVariant variant{Bytes(v == 0 ? 0 : std::int64_t(100 + random() % 100)), {}};
      for (int m = 0; m < 3; ++m) {
        std::vector<FormOption> options;
        if (v == 0) options.push_back({{}, Bytes(1000), 0.0});
        for (int level = 1; level <= 3; ++level) {
          SlotForm form;
          if (v == 1) form = {g, 7u, std::nullopt, std::nullopt, 0, false};
          form.rank = level;
          options.push_back({form, Bytes(std::int64_t(400 / level + int(random() % 50)) * (v == 0 ? 2 : 1)), 0.01 * double(level * level) * double(1 + random() % 5)});
        }
        variant.members.push_back(std::move(options));
      }
      group.variants.push_back(std::move(variant));
    }
    pool.groups.push_back(std::move(group));
  }
  pool.original = Bytes(std::int64_t(1000) * 3 * groups);
  return pool;
}

/// Bytes plus priced damage of the best of all combinations, group by group.
double least_cost(const PoolOptions& pool, const Prices& prices) {
  double total = 0.0;
  for (const SlotGroup& group : pool.groups) {
    double least = 1e300;
    for (const GroupVariant& variant : group.variants) {
      for (const FormOption& a : variant.members[0]) {
        for (const FormOption& b : variant.members[1]) {
          for (const FormOption& c : variant.members[2]) {
            least = std::min(least, double((variant.canonical + a.bytes + b.bytes + c.bytes).count()) + prices[0] * a.damage +
                                        prices[1] * b.damage + prices[2] * c.damage);
          }
        }
      }
    }
    total += least;
  }
  return total;
}

/// A model's drop follows its true damage: that of the options, by a factor that the search does not know.
struct World {
  const PoolOptions& pool;
  std::vector<double> factor;
  double budget = 2.0;

  [[nodiscard]] std::vector<Verdict> judge(const PoolState& state) const {
    std::vector<double> drop(pool.models, 0.0);
    for (const SlotGroup& group : pool.groups) {
      const GroupVariant* variant = variant_of(group, state);
      for (std::size_t i = 0; i < group.sites.size(); ++i) {
        for (const FormOption& option : variant->members[i]) {
          if (option.form == state[group.sites[i]]) drop[pool.model_of[group.sites[i]]] += factor[pool.model_of[group.sites[i]]] * option.damage;
        }
      }
    }
    std::vector<Verdict> out;
    for (const double d : drop) out.push_back({10'000, std::int64_t(d * 100.0), 0, d, d <= budget});
    return out;
  }
};

}  // namespace

TEST_CASE("an allocation costs as little as the best of all combinations") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const PoolOptions pool = random_pool(seed, 6);
    const Prices prices{1.0 * double(seed), 300.0, 5'000.0};
    const Allocation out = allocate(pool, prices);
    double cost = double(out.bytes.count());
    for (std::size_t m = 0; m < 3; ++m) cost += prices[m] * out.damage[m];
    CHECK(cost == doctest::Approx(least_cost(pool, prices)).epsilon(1e-12));
    CHECK(bytes_of(pool, out.state) == out.bytes);
  }
}

TEST_CASE("damage without a price is taken, and at any price avoided") {
  const PoolOptions pool = random_pool(3, 4);
  CHECK(allocate(pool, {1e12, 1e12, 1e12}).state == PoolState(pool.model_of.size()));
  CHECK(allocate(pool, {0, 0, 0}).bytes < Bytes(pool.original.count() / 4));
}

TEST_CASE("the search ends within its rounds, near each model's budget, and never beyond") {
  const PoolOptions pool = random_pool(5, 12);
  const World world{pool, {1.0, 20.0, 0.1}};
  PriceSearch search(pool, {});
  int rounds = 0;
  while (const auto state = search.next()) {
    search.hear(world.judge(*state));
    ++rounds;
  }
  CHECK(rounds <= 14 + 6 + 24 + 24);
  const auto verdicts = world.judge(search.best());
  for (const Verdict& verdict : verdicts) CHECK(verdict.accepted);
  CHECK(verdicts[0].bound > 0.6 * world.budget);
  CHECK(verdicts[1].bound > 0.6 * world.budget);
  // The third cannot lose as much as it may: it takes the fewest bytes there are.
  CHECK(bytes_of(pool, search.best()).count() < pool.original.count() * 6 / 10);
}

TEST_CASE("a search that hears the same again proposes the same again") {
  const PoolOptions pool = random_pool(9, 8);
  const World world{pool, {3.0, 2.0, 1.0}};
  PriceSearch first(pool, {});
  PriceSearch second(pool, {});
  while (const auto state = first.next()) {
    REQUIRE(second.next() == state);
    first.hear(world.judge(*state));
    second.hear(world.judge(*state));
  }
  CHECK_FALSE(second.next().has_value());
  CHECK(first.best() == second.best());
}

}  // namespace sangam::merging
