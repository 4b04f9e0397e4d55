// Who is steady: by size and volatility, with room between coming and going; and what models share.
#include <doctest/doctest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/placement/pools.hpp"
#include "actors/placement/weight_map.hpp"

namespace sangam {
namespace {

const ModelId kA{"A"};

Instant at(std::int64_t millis) { return Instant(Millis(millis)); }

ModelTable table(const std::string& model, const std::vector<std::uint64_t>& digests) {
  ModelTable t;
  t.model = ModelId(model);
  for (const std::uint64_t digest : digests) t.segments.push_back({digest, Bytes(std::int64_t(digest))});
  return t;
}

/// Enters A, and goes on at 20 s.
SteadyPool with_member() {
  SteadyPool pool{PoolOptions{}};
  CHECK_FALSE(pool.see(kA, {0.2, 1.0, false}, at(0)));
  CHECK(pool.see(kA, {0.2, 1.0, false}, at(10'000)));
  return pool;
}

TEST_CASE("who would be late on one worker does not enter; who is made late there leaves and stays away") {
  SteadyPool pool(PoolOptions{});
  pool.see(kA, {0.2, 1.0, false, 0.99}, at(0));
  CHECK_FALSE(pool.see(kA, {0.2, 1.0, false, 0.99}, at(60'000)));  // 0.995 is asked for.
  pool.see(kA, {0.2, 1.0, false, 0.999}, at(61'000));
  CHECK(pool.see(kA, {0.2, 1.0, false, 0.999}, at(71'000)));
  CHECK_FALSE(pool.see(kA, {0.2, 1.0, false, 0.985}, at(80'000)));  // Within the hysteresis.
  pool.see(kA, {0.2, 1.0, false, 0.97}, at(90'000));
  CHECK(pool.see(kA, {0.2, 1.0, false, 0.97}, at(92'000)));
  CHECK_FALSE(pool.holds(kA));
  for (std::int64_t t = 93'000; t < 392'000; t += 1'000) CHECK_FALSE(pool.see(kA, {0.2, 1.0, false, 1.0}, at(t)));
  pool.see(kA, {0.2, 1.0, false, 1.0}, at(392'000));
  CHECK(pool.see(kA, {0.2, 1.0, false, 1.0}, at(402'000)));
}

}  // namespace

TEST_CASE("a model enters when it has looked steady for the dwell, and not a moment before") {
  SteadyPool pool{PoolOptions{}};
  CHECK_FALSE(pool.see(kA, {0.5, 3.0, false}, at(0)));
  CHECK_FALSE(pool.see(kA, {0.5, 3.0, false}, at(9'999)));
  CHECK_FALSE(pool.holds(kA));
  CHECK(pool.see(kA, {0.5, 3.0, false}, at(10'000)));
  CHECK(pool.holds(kA));
}

TEST_CASE("an interruption begins the dwell anew") {
  SteadyPool pool{PoolOptions{}};
  CHECK_FALSE(pool.see(kA, {0.2, 1.0, false}, at(0)));
  CHECK_FALSE(pool.see(kA, {0.51, 1.0, false}, at(9'000)));
  CHECK_FALSE(pool.see(kA, {0.2, 1.0, false}, at(9'500)));
  CHECK_FALSE(pool.see(kA, {0.2, 1.0, false}, at(19'000)));
  CHECK(pool.see(kA, {0.2, 1.0, false}, at(19'500)));
}

TEST_CASE("between the thresholds a model stays on the side where it is") {
  SteadyPool pool = with_member();
  for (std::int64_t t = 20'000; t < 60'000; t += 500) CHECK_FALSE(pool.see(kA, {0.6, 4.0, false}, at(t)));
  CHECK(pool.holds(kA));
  SteadyPool other{PoolOptions{}};
  for (std::int64_t t = 0; t < 60'000; t += 500) CHECK_FALSE(other.see(kA, {0.6, 4.0, false}, at(t)));
  CHECK_FALSE(other.holds(kA));
}

TEST_CASE("a member leaves when it was too large or too volatile for its dwell") {
  for (const ModelTraffic traffic : {ModelTraffic{0.71, 1.0, false}, ModelTraffic{0.2, 5.1, false}}) {
    SteadyPool pool = with_member();
    CHECK_FALSE(pool.see(kA, traffic, at(20'000)));
    CHECK_FALSE(pool.see(kA, traffic, at(21'999)));
    CHECK(pool.see(kA, traffic, at(22'000)));
    CHECK_FALSE(pool.holds(kA));
  }
}

TEST_CASE("a volatile model whose peak is small is steady") {
  SteadyPool pool{PoolOptions{}};
  CHECK_FALSE(pool.see(kA, {0.01, 10.0, false}, at(0)));
  CHECK(pool.see(kA, {0.01, 10.0, false}, at(10'000)));
  CHECK_FALSE(pool.see(kA, {0.011, 10.0, false}, at(20'000)));
  CHECK(pool.see(kA, {0.011, 10.0, false}, at(22'000)));
}

TEST_CASE("a member without requests leaves after its time, and a request in between keeps it") {
  SteadyPool pool = with_member();
  CHECK_FALSE(pool.see(kA, {0.0, 1.0, true}, at(60'000)));
  CHECK_FALSE(pool.see(kA, {0.1, 1.0, false}, at(69'000)));
  CHECK_FALSE(pool.see(kA, {0.0, 1.0, true}, at(128'999)));
  CHECK(pool.see(kA, {0.0, 1.0, true}, at(129'000)));
}

TEST_CASE("a restored member is one without dwell") {
  SteadyPool pool{PoolOptions{}};
  pool.restore(kA, at(0));
  CHECK(pool.holds(kA));
  CHECK_FALSE(pool.see(kA, {0.6, 1.0, false}, at(100)));
  CHECK(pool.holds(kA));
}

TEST_CASE("segments are grouped by who has them: any set's bytes come out as by brute force") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    WeightMap map;
    std::vector<ModelTable> tables;
    for (int m = 0; m < 8; ++m) {
      std::set<std::uint64_t> digests;
      for (int i = 0; i < 12; ++i) digests.insert(1 + random() % 40);
      tables.push_back(table("m" + std::to_string(m), {digests.begin(), digests.end()}));
      CHECK(map.set(tables.back()));
      CHECK_FALSE(map.set(tables.back()));
    }
    for (std::uint32_t mask = 1; mask < 256; ++mask) {
      std::set<std::uint64_t> digests;
      std::set<std::uint32_t> pieces;
      Bytes ours{0};
      for (std::size_t m = 0; m < tables.size(); ++m) {
        if (!(mask >> m & 1U)) continue;
        for (const SegmentSize& segment : tables[m].segments) digests.insert(segment.digest);
        const WeightParts* parts = map.parts(tables[m].model);
        REQUIRE(parts != nullptr);
        ours += parts->alone;
        pieces.insert(parts->pieces.begin(), parts->pieces.end());
      }
      for (const std::uint32_t piece : pieces) ours += map.pieces()[piece];
      std::int64_t sum = 0;
      for (const std::uint64_t digest : digests) sum += std::int64_t(digest);
      CHECK(ours == Bytes(sum));
    }
  }
}

TEST_CASE("models that share, also through a third, are of one family, and others are not") {
  WeightMap map;
  map.set(table("a", {1, 2}));
  map.set(table("b", {2, 3}));
  map.set(table("c", {3, 4}));
  map.set(table("d", {5}));
  CHECK(map.parts(ModelId("a"))->family == map.parts(ModelId("c"))->family);
  CHECK(map.parts(ModelId("a"))->family != kNoFamily);
  CHECK(map.parts(ModelId("d"))->family == kNoFamily);
  CHECK(map.parts(ModelId("d"))->alone == Bytes(5));
  CHECK(map.parts(ModelId("e")) == nullptr);
  map.set(table("b", {7}));  // Read anew.
  CHECK(map.parts(ModelId("a"))->family == kNoFamily);
}

}  // namespace sangam
