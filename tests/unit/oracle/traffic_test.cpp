// Sliding windows over a queue's counts: rates, moments, bursts, and letters that are lost, late or from a new queue.
#include "actors/oracle/traffic.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace sangam;

namespace {

Instant at(double seconds) { return Instant(Micros(std::int64_t(seconds * 1e6))); }

/// A queue that counts, says so every half second, and the windows that hear it.
struct Stream {
  TrafficWindows windows{{Millis(3'000), Millis(30'000), Millis(300'000)}, 100.0};
  QueueStatus status;
  double now = 0.0;

  void arrive(std::int64_t tokens) {
    ++status.arrived;
    status.input_tokens += std::uint64_t(tokens);
    status.input_tokens_squared += double(tokens) * double(tokens);
  }
  void end(std::int64_t tokens) {
    ++status.ended;
    status.output_tokens += std::uint64_t(tokens);
    status.output_tokens_squared += double(tokens) * double(tokens);
  }
  void tell(bool lost = false) {
    ++status.sequence;
    if (!lost) windows.on(status);
  }
  void tick() {
    windows.tick(at(now));
    now += 0.5;
  }
  /// For so many half seconds, `count` requests of `tokens` in each.
  void steady(int halves, int count, std::int64_t tokens) {
    for (int i = 0; i < halves; ++i) {
      for (int k = 0; k < count; ++k) arrive(tokens);
      tell();
      tick();
    }
  }
};

}  // namespace

TEST_CASE("rates and moments are those of the window") {
  Stream s;
  s.steady(1, 0, 0);
  for (int i = 0; i < 60; ++i) {
    s.arrive(100);
    s.arrive(300);
    s.end(10);
    s.end(20);
    s.end(60);
    s.tell();
    s.tick();
  }
  const Traffic traffic = s.windows.over(Millis(30'000));
  CHECK(traffic.requests_per_second == doctest::Approx(4.0));
  CHECK(traffic.input_tokens_per_second == doctest::Approx(800.0));
  CHECK(traffic.input_mean == doctest::Approx(200.0));
  CHECK(traffic.input_variance == doctest::Approx(10'000.0));
  CHECK(traffic.output_mean == doctest::Approx(30.0));
  CHECK(traffic.output_variance == doctest::Approx((100.0 + 400.0 + 3600.0) / 3.0 - 900.0));
  CHECK(s.windows.volatility() == doctest::Approx(1.0));
}

TEST_CASE("what the queue counted before the first letter that is heard is no traffic") {
  Stream s;
  s.status.arrived = 1'000'000;
  s.status.sequence = 500;
  s.steady(10, 1, 10);
  CHECK(s.windows.arrived() == 9.0);
}

TEST_CASE("the first letter of a queue's life counts") {
  Stream s;
  s.steady(3, 5, 10);
  CHECK(s.windows.arrived() == 15.0);
}

TEST_CASE("a lost letter loses no count and a late one adds none") {
  Stream s;
  s.steady(1, 0, 0);
  s.arrive(10);
  s.tell();
  const QueueStatus late = s.status;
  s.arrive(10);
  s.tell(true);
  s.arrive(10);
  s.tell();
  s.windows.on(late);
  s.windows.on(late);
  s.windows.on(s.status);
  CHECK(s.windows.arrived() == 3.0);
  s.arrive(10);
  s.tell();
  CHECK(s.windows.arrived() == 4.0);
}

TEST_CASE("a queue that begins anew is followed, whether its loss was told or not") {
  Stream s;
  s.steady(20, 2, 10);
  REQUIRE(s.windows.arrived() == 40.0);
  SUBCASE("told") {
    s.windows.forget_queue();
    s.status = {};
    s.steady(4, 3, 10);
    CHECK(s.windows.arrived() == 52.0);
  }
  SUBCASE("not told: letters are taken for late ones until four have risen in a row") {
    s.status = {};
    s.steady(4, 3, 10);
    CHECK(s.windows.arrived() == 40.0);
    s.steady(4, 3, 10);
    CHECK(s.windows.arrived() == 52.0);
  }
  SUBCASE("counts that fall under a higher sequence") {
    s.status.arrived = 1;
    s.tell();
    CHECK(s.windows.arrived() == 40.0);
    s.arrive(10);
    s.tell();
    CHECK(s.windows.arrived() == 41.0);
  }
}

TEST_CASE("volatility is the largest rate of three seconds over the mean") {
  Stream s;
  s.steady(100, 1, 100);
  s.steady(6, 5, 100);
  s.steady(94, 1, 100);
  // 199 of 200 half seconds lie between ticks; the first letter came before the first tick.
  const double mean = (193.0 + 30.0) / 99.5 * 100.0;
  CHECK(s.windows.volatility() == doctest::Approx(1'000.0 / mean).epsilon(1e-6));
}

TEST_CASE("a jump is believed within its window, noise is averaged") {
  Stream s;
  std::mt19937_64 random(5);
  std::poisson_distribution<int> quiet(10);
  double squared = 0.0;
  int count = 0;
  for (int i = 0; i < 400; ++i) {
    s.steady(1, quiet(random), 50);
    if (i < 100) continue;
    const double error = s.windows.believed().requests_per_second - 20.0;
    squared += error * error;
    ++count;
  }
  // The deviation of a rate of 20 over 30 s is sqrt(20 / 30) = 0.82, over 3 s 2.6.
  CHECK(std::sqrt(squared / count) < 1.2);
  std::poisson_distribution<int> burst(50);
  for (int i = 0; i < 6; ++i) s.steady(1, burst(random), 50);
  CHECK(s.windows.believed().requests_per_second > 80.0);
  for (int i = 0; i < 6; ++i) s.steady(1, quiet(random), 50);
  CHECK(s.windows.believed().requests_per_second < 30.0);
}

TEST_CASE("rare requests are averaged over the longest window, and outputs assumed until one has ended") {
  Stream s;
  for (int i = 0; i < 600; ++i) s.steady(1, i % 40 == 0 ? 1 : 0, 80);
  const Traffic traffic = s.windows.believed();
  CHECK(traffic.requests_per_second == doctest::Approx(0.05).epsilon(0.1));
  CHECK(traffic.input_mean == doctest::Approx(80.0));
  CHECK(traffic.output_mean == 100.0);
}

TEST_CASE("without ticks, or without time between them, nothing is said") {
  TrafficWindows windows{{Millis(3'000), Millis(30'000), Millis(300'000)}, 100.0};
  CHECK(windows.believed().requests_per_second == 0.0);
  CHECK(windows.volatility() == 1.0);
  windows.tick(at(1.0));
  windows.tick(at(1.0));
  CHECK(windows.over(Millis(3'000)).requests_per_second == 0.0);
  CHECK(windows.volatility() == 1.0);
}

TEST_CASE("peakedness is how many requests come together, and a slow change is none") {
  Stream even;
  even.steady(200, 5, 100);
  CHECK(even.windows.peakedness() == 1.0);

  // Batches of six at random: counts have six times the variance that random ones have.
  Stream batches;
  std::mt19937_64 random(3);
  std::poisson_distribution<int> count(2.0);
  for (int i = 0; i < 600; ++i) batches.steady(1, 6 * count(random), 100);
  CHECK(batches.windows.peakedness() == doctest::Approx(6.0).epsilon(0.15));

  Stream alone;
  for (int i = 0; i < 600; ++i) alone.steady(1, count(random), 100);
  CHECK(alone.windows.peakedness() == doctest::Approx(1.0).epsilon(0.15));

  Stream ramp;
  for (int i = 0; i < 600; ++i) ramp.steady(1, i / 6, 100);
  CHECK(ramp.windows.peakedness() == 1.0);

  Stream few;
  few.steady(20, 0, 0);
  few.steady(1, 3, 100);
  CHECK(few.windows.peakedness() < 1.3);

  // Letters that fall two into one tick and none into the next are no burst, nor is one that is lost.
  Stream uneven;
  for (int i = 0; i < 200; ++i) {
    for (int letter = 0; letter < (i % 2) * 2; ++letter) {
      for (int k = 0; k < 50; ++k) uneven.arrive(100);
      uneven.tell(i % 20 == 7 && letter == 0);
    }
    uneven.tick();
  }
  CHECK(uneven.windows.peakedness() == 1.0);
}
