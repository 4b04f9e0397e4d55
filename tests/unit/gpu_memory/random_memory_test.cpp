// Pool, caches and segments together, under failures, against sets of page numbers.
#include <doctest/doctest.h>

#include "tests/unit/gpu_memory/random_run.hpp"

using namespace sangam;
using namespace sangam::testing;

TEST_CASE("random operations with failing devices and hashes agree with sets of page numbers") {
  for (const std::uint64_t seed : {20261130, 7, 8, 9}) {
    CAPTURE(seed);
    RandomRun run({seed, seed == 20261130 ? 256 : 61});
    int step = 0;
    while (step < 50'000 && run.step()) ++step;
    CAPTURE(run.why);
    REQUIRE(step == 50'000);
    CHECK(run.faults() > 50);
    CHECK(run.scattered() > 100);
    CHECK(run.loads() > 1000);
    CHECK(run.lost() < Bytes{run.pool().page_bytes() * 8});  // of eight tables, less than a page each
    CHECK(run.finish());
  }
}
