// The line against stepping through every token.
#include "sim/world/decode_line.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace sangam::sim {
namespace {

TEST_CASE("tokens and times along a bent line, by hand") {
  DecodeLine line;
  line.bend(100.0, 10.0);  // A token each 10 us from 100 on,
  line.bend(150.0, 20.0);  // each 20 us from 150 on (5 tokens so far),
  CHECK(line.tokens_at(190.0) == doctest::Approx(7.0));
  CHECK(line.time_at(8.0) == doctest::Approx(210.0));
  line.bend(190.0, DecodeLine::kNever);
  CHECK(line.tokens_at(1e9) == doctest::Approx(7.0));
  CHECK(line.time_at(7.5) == DecodeLine::kNever);
  line.bend(500.0, 1.0);
  std::vector<double> times;
  line.each_token(3.5, 4, [&](double at) { times.push_back(at); });
  CHECK(times == std::vector<double>{145.0, 160.0, 180.0, 500.5});
}

TEST_CASE("random bends: each token's time is where a walk in small steps finds it, also after forgetting") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    DecodeLine line;
    std::vector<std::pair<double, double>> bends{{0.0, 0.0}};  // Time and tokens per microsecond.
    double now = 0.0;
    for (int i = 0; i < 30; ++i) {
      now += 1.0 + double(random() % 50);
      const double step = random() % 5 == 0 ? DecodeLine::kNever : 2.0 + double(random() % 20);
      line.bend(now, step);
      bends.emplace_back(now, 1.0 / step);
    }
    const auto walked = [&](double at) {
      double tokens = 0.0;
      for (std::size_t i = 0; i < bends.size() && bends[i].first < at; ++i) {
        const double until = i + 1 < bends.size() ? std::min(at, bends[i + 1].first) : at;
        tokens += (until - bends[i].first) * bends[i].second;
      }
      return tokens;
    };
    const double from = line.tokens_at(now) * 0.4;
    if (round % 2 == 0) line.forget_before(from);
    const auto count = std::int64_t(line.tokens_at(now) - from);
    double last = 0.0;
    std::int64_t i = 0;
    line.each_token(from, count, [&](double at) {
      CHECK(walked(at) == doctest::Approx(from + double(++i)));
      CHECK(at >= last);
      last = at;
    });
    CHECK(i == count);
  }
}

}  // namespace
}  // namespace sangam::sim
