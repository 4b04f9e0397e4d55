// Intervals: their ranks by hand, and their coverage where an independent queue makes the waits.
#include "actors/scheduler/quotes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <string>

using namespace sangam;

namespace {

Instant at(std::int64_t micros) { return Instant(Micros(micros)); }

/// Without a grain: errors are plain ratios.
QuoteOptions exact() { return {.grain = Micros(0)}; }

/// Quotes that were off by these percents of a prediction of a millisecond.
void learn(Quotes& quotes, ModelIndex model, int from, int to) {
  for (int percent = from; percent <= to; ++percent) {
    const RequestId request{std::uint64_t(percent) + 1000u * model};
    REQUIRE(quotes.open(request, model, Micros(1000), at(0)));
    quotes.first_token(request, at(10 * percent));
  }
}

}  // namespace

TEST_CASE("eighteen errors promise nothing, nineteen the range that they span") {
  Quotes quotes(exact());
  learn(quotes, 0, 1, 18);
  CHECK_FALSE(quotes.interval(0, Micros(1000)).has_value());
  learn(quotes, 0, 19, 19);
  const auto interval = quotes.interval(0, Micros(2000));
  REQUIRE(interval.has_value());
  CHECK(interval->earliest == Micros(20));
  CHECK(interval->latest == Micros(380));
}

TEST_CASE("of 99 errors the fifth from either end bounds the tenth that may miss") {
  Quotes quotes(exact());
  learn(quotes, 0, 1, 99);
  const auto interval = quotes.interval(0, Micros(100'000));
  REQUIRE(interval.has_value());
  // (99 + 1) * 0.05 = 5 gaps are left out below, and 5 above.
  CHECK(interval->earliest == Micros(5'000));
  CHECK(interval->latest == Micros(95'000));
}

TEST_CASE("a model with few errors borrows those of all, and one with enough does not") {
  Quotes quotes(exact());
  learn(quotes, 0, 101, 119);
  REQUIRE(quotes.interval(1, Micros(1000)).has_value());
  CHECK(quotes.interval(1, Micros(1000))->latest == Micros(1190));
  learn(quotes, 1, 501, 519);
  CHECK(quotes.interval(0, Micros(1000))->latest == Micros(1190));
  CHECK(quotes.interval(1, Micros(1000))->earliest == Micros(5010));
}

TEST_CASE("the window forgets what is old") {
  QuoteOptions options = exact();
  options.window = 19;
  Quotes quotes(options);
  learn(quotes, 0, 1, 38);
  CHECK(quotes.interval(0, Micros(1000))->earliest == Micros(200));
}

TEST_CASE("waits for a model that nobody holds are not mixed with the others") {
  Quotes quotes(QuoteOptions{});
  learn(quotes, 0, 1, 50);
  CHECK_FALSE(quotes.interval(0, std::nullopt).has_value());
  for (int i = 1; i <= 19; ++i) {
    const RequestId request{std::uint64_t(i)};
    REQUIRE(quotes.open(request, 0, std::nullopt, at(0)));
    quotes.first_token(request, at(1'000'000 + 1'000 * i));
  }
  const auto cold = quotes.interval(0, std::nullopt);
  REQUIRE(cold.has_value());
  CHECK(cold->earliest == Micros(1'001'000));
  CHECK(cold->latest == Micros(1'019'000));
}

TEST_CASE("the first quote of a request counts, once, and the oldest are forgotten") {
  QuoteOptions options = exact();
  options.open_max = 4;
  Quotes quotes(options);
  CHECK(quotes.open(RequestId{1}, 0, Micros(10), at(0)));
  CHECK_FALSE(quotes.open(RequestId{1}, 0, Micros(99), at(5)));
  for (std::uint64_t id = 2; id <= 5; ++id) CHECK(quotes.open(RequestId{id}, 0, Micros(10), at(0)));
  CHECK(quotes.open(RequestId{1}, 0, Micros(10), at(0)));
  CHECK_FALSE(quotes.open(RequestId{4}, 0, Micros(10), at(0)));
  quotes.first_token(RequestId{99}, at(7));
}

namespace {

/// A queue with one server, by Lindley's recursion: Poisson arrivals whose rate swings by a third within a day of
/// 20,000 requests, service times that are lognormal around a length which drifts, and a predictor that knows neither
/// (it takes every length for its first mean and the server for as fast as it was at the start). Waits come to be
/// known only when they end.
struct Simulated {
  double coverage = 0.0;
  double worst = 1.0;  ///< Of 1,000 requests in a row.
  double relative_width = 0.0;
};

Simulated simulate(std::uint64_t seed, double noise, double drift) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::exponential_distribution<double> pause(1.0);
  Quotes quotes{QuoteOptions{}};
  struct Ending {
    double at;
    RequestId request;
  };
  std::vector<Ending> endings;  // In order: the server is first come, first served.
  std::size_t ended = 0;
  double now = 0.0, free_at = 0.0;
  int inside = 0, quoted = 0, inside_of_1000 = 0;
  Simulated result;
  for (int i = 0; i < 60'000; ++i) {
    const double swing = 1.0 + std::sin(2.0 * std::numbers::pi * i / 20'000.0) / 3.0;
    now += pause(random) * 100'000.0 / (0.7 * swing);
    for (; ended < endings.size() && endings[ended].at <= now; ++ended) {
      quotes.first_token(endings[ended].request, at(std::int64_t(endings[ended].at)));
    }
    const double slower = 1.0 + drift * i / 60'000.0;
    const double service = 70'000.0 * slower * std::exp(noise * normal(random) - noise * noise / 2.0);
    // The predictor counts what is ahead, each at 70 ms.
    const auto predicted = Micros(std::int64_t(70'000.0 * (double(endings.size() - ended) + 1.0)));
    free_at = std::max(free_at, now) + service;
    if (const auto interval = quotes.interval(0, predicted)) {
      const bool hit = Micros(std::int64_t(free_at - now)) >= interval->earliest &&
                       Micros(std::int64_t(free_at - now)) <= interval->latest;
      inside += hit;
      inside_of_1000 += hit;
      result.relative_width += double((interval->latest - interval->earliest).count()) / double(predicted.count());
      if (++quoted % 1000 == 0) result.worst = std::min(result.worst, std::exchange(inside_of_1000, 0) / 1000.0);
    }
    const RequestId request{std::uint64_t(i)};
    quotes.open(request, 0, predicted, at(std::int64_t(now)));
    endings.push_back({free_at, request});
  }
  result.coverage = double(inside) / quoted;
  result.relative_width /= quoted;
  return result;
}

}  // namespace

TEST_CASE("nine first tokens in ten come within their interval, whatever the noise and the drift") {
  for (const double noise : {0.2, 0.6}) {
    for (const double drift : {0.0, 0.3}) {
      const Simulated result = simulate(7, noise, drift);
      CAPTURE(noise);
      CAPTURE(drift);
      MESSAGE("noise ", noise, " drift ", drift, ": coverage ", result.coverage, ", worst of 1,000 ", result.worst,
              ", mean width ", result.relative_width, " of the prediction");
      CHECK(result.coverage > 0.88);
      CHECK(result.coverage < 0.93);
    }
  }
}
