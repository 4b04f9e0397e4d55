// The measured drain rate against hand calculation.
#include "actors/queue/drain_rate.hpp"

#include <doctest/doctest.h>

using namespace sangam;

namespace {
Instant at(std::int64_t millis) {
  return Instant(Millis(millis));
}
}  // namespace

TEST_CASE("a backlog that completes 1000 tokens in 10 s drains 250 tokens in 2.5 s") {
  DrainRate rate;
  rate.advance(at(5'000), false);
  for (int i = 1; i <= 10; ++i) {
    rate.advance(at(5'000 + 1'000 * i), true);
    rate.drained(Tokens(100));
  }
  CHECK(rate.time_for(Tokens(250), at(15'000)) == Millis(2'500));
  CHECK(rate.time_for(Tokens(1), at(15'000)) == Millis(10));
}

TEST_CASE("time without a backlog does not slow the measured drain") {
  DrainRate rate;
  rate.advance(at(1'000), true);
  rate.drained(Tokens(500));
  rate.advance(at(20'000), false);
  rate.advance(at(21'000), true);
  rate.drained(Tokens(500));
  CHECK(rate.time_for(Tokens(1'000), at(21'000)) == Millis(2'000));
}

TEST_CASE("a drain seen for less than half a second, or without a completion, is unknown") {
  DrainRate rate;
  rate.advance(at(499), true);
  rate.drained(Tokens(1'000));
  CHECK(rate.time_for(Tokens(1'000), at(499)) == Millis(0));
  rate.advance(at(500), true);
  CHECK(rate.time_for(Tokens(1'000), at(500)) == Millis(500));
  DrainRate stuck;
  stuck.advance(at(9'000), true);
  CHECK(stuck.time_for(Tokens(1'000), at(9'000)) == Millis(0));
}

TEST_CASE("what is older than the window counts no more") {
  DrainRate rate;
  rate.advance(at(2'000), true);
  rate.drained(Tokens(1'000'000));
  rate.advance(at(100'000), false);
  rate.advance(at(102'000), true);
  rate.drained(Tokens(20));
  CHECK(rate.time_for(Tokens(10), at(102'000)) == Millis(1'000));
}

TEST_CASE("a wait longer than the window is counted for the window only") {
  DrainRate rate;
  rate.advance(at(1'000'000), true);
  rate.drained(Tokens(3'000));
  // The slices of 2 s that begin at 970 s .. 1000 s: 30 s of waiting.
  CHECK(rate.time_for(Tokens(3'000), at(1'000'000)) == Millis(30'000));
}
