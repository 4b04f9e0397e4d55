// What is learned on top of the laws, which requests count for which window, and how the forecasts are scored.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "actors/oracle/calibration.hpp"
#include "actors/oracle/capacity.hpp"
#include "actors/oracle/elasticity.hpp"
#include "actors/oracle/observation.hpp"
#include "actors/oracle/waiting.hpp"

using namespace sangam;

namespace {

/// Within a part of the expected value; doctest's own tolerance adds a constant.
bool near(double value, double expected, double part) {
  return std::abs(value - expected) <= part * std::abs(expected);
}

Instant at(double seconds) { return Instant(Micros(std::int64_t(seconds * 1e6))); }

Traffic traffic(double rate) { return {rate * 500.0, rate, 500.0, 1e4, 50.0, 400.0}; }

ServedRequest served(Millis ttft, Millis tpot, std::int64_t output) {
  ServedRequest r;
  r.input = Tokens(100);
  r.output = Tokens(output);
  r.ttft = ttft;
  r.tpot = tpot;
  r.ttft_slo = Millis(500);
  r.tpot_slo = Millis(50);
  return r;
}

}  // namespace

TEST_CASE("a law that is wrong by a factor is put right, and its interval holds") {
  const OracleOptions options;
  Capacity capacity(options, 1);
  Calibrations calibrations;
  std::mt19937_64 random(4);
  std::normal_distribution<double> noise(0.0, 0.05);
  const auto truth = [&](double rate) {
    return Demand{3e9 * rate, 0.02 * rate * std::exp(noise(random)), 0.05 * std::pow(rate, 0.8)};
  };
  const auto law = [](double rate) { return Demand{1e9 * rate, 0.03 * rate, 0.05 * rate}; };
  for (int i = 0; i < 150; ++i) {
    const double rate = 1.0 + double(random() % 200) / 10.0;
    capacity.learn(learning_inputs(traffic(rate), 2.0), law(rate), truth(rate), calibrations);
    for (GaussianProcess& process : capacity.processes()) {
      if (process.fit_due()) process.fit(0);
    }
  }
  const DemandForecast f = capacity.foresee(learning_inputs(traffic(10.0), 2.0), law(10.0));
  CHECK(near(f.mean.kv_bytes, 3e10, 0.03));
  CHECK(near(f.mean.compute, 0.2, 0.05));
  CHECK(near(f.deviation.compute, 0.2 * 0.05, 0.5));
  CHECK(near(f.mean.bandwidth, 0.05 * std::pow(10.0, 0.8), 0.03));
  CHECK(calibrations.compute.score().count == 150);
  CHECK(calibrations.compute.score().coverage > 0.82);
}

TEST_CASE("far from all that was seen the law's uncertainty comes back") {
  const OracleOptions options;
  Capacity capacity(options, 1);
  Calibrations calibrations;
  for (int i = 0; i < 40; ++i) {
    const double rate = 5.0 + 0.1 * i;
    const Demand law{1e9 * rate, 0.03 * rate, 0.05 * rate};
    capacity.learn(learning_inputs(traffic(rate), 1.0), law, law, calibrations);
    for (GaussianProcess& process : capacity.processes()) {
      if (process.fit_due()) process.fit(0);
    }
  }
  const auto relative = [&](double rate) {
    const Demand law{1e9 * rate, 0.03 * rate, 0.05 * rate};
    const DemandForecast f = capacity.foresee(learning_inputs(traffic(rate), 1.0), law);
    return f.deviation.compute / f.mean.compute;
  };
  CHECK(relative(500.0) > 2.0 * relative(7.0));
}

TEST_CASE("attainment that is worse than the law is learned, stays monotone, and certainty needs evidence") {
  OracleOptions options;
  options.instances_max = 16;
  Elasticity elasticity(options, 1);
  Calibration score;
  const auto law = [](int m) { return Attainment{logistic(2.0 * m - 5.0), 1.0}; };
  const auto truth = [](int m) { return logistic(2.0 * m - 7.0); };
  const auto inputs = [](int m) { return learning_inputs(traffic(10.0), m); };
  const AttainmentCurves before = elasticity.foresee(inputs, law, 3);
  CHECK(before.prefill[2] < law(3).prefill);
  std::mt19937_64 random(5);
  for (int i = 0; i < 120; ++i) {
    const int m = 2 + int(random() % 4);
    std::binomial_distribution<int> on_time(100, truth(m));
    elasticity.learn_prefill(inputs(m), law(m).prefill, {100.0, double(on_time(random))}, score);
    for (GaussianProcess& process : elasticity.processes()) {
      if (process.fit_due()) process.fit(0);
    }
  }
  const AttainmentCurves after = elasticity.foresee(inputs, law, 3);
  REQUIRE(after.prefill.size() == 16);
  CHECK(std::is_sorted(after.prefill.begin(), after.prefill.end()));
  for (const int m : {2, 3, 4, 5}) {
    CAPTURE(m);
    CHECK(after.prefill[std::size_t(m) - 1] <= truth(m) + 0.02);
    CHECK(std::abs(after.prefill[std::size_t(m) - 1] - truth(m)) < 0.06);
  }
  CHECK(after.prefill[15] > 0.98);
  CHECK(score.score().coverage > 0.8);
  // Nothing was learned of later tokens, which have no deadline.
  CHECK(after.decode[0] == 1.0);
}

TEST_CASE("a hundred requests on time say nothing against a law that is sure of it") {
  const OracleOptions options;
  Elasticity elasticity(options, 1);
  Calibration score;
  const auto inputs = [](int m) { return learning_inputs(traffic(10.0), m); };
  for (int i = 0; i < 20; ++i) elasticity.learn_prefill(inputs(4), 0.9999, {100.0, 100.0}, score);
  const auto law = [](int) { return Attainment{0.9999, 1.0}; };
  CHECK(elasticity.foresee(inputs, law, 4).prefill[3] > 0.9995);
  CHECK(score.score().error_p90 < 0.001);
}

TEST_CASE("requests belong to the window in which they came") {
  AttainmentWindows windows({Millis(10'000), Millis(5'000)});
  CHECK(windows.tick(2, 0.0, at(0.0)) == nullptr);
  // Came at 2 s (0.25 s underway to us), its first token in time, one of four later ones late.
  ServedRequest one = served(Millis(400), Millis(100), 5);
  one.late = Tokens(1);
  windows.note(one, at(3.05));
  // Refused; later it does not count who left or asked for what cannot be.
  ServedRequest refused = served(Millis(0), Millis(0), 0);
  refused.code = ErrorCode::cannot_be_on_time;
  windows.note(refused, at(5.0));
  for (const ErrorCode code : {ErrorCode::cancelled, ErrorCode::invalid_input, ErrorCode::context_length}) {
    refused.code = code;
    windows.note(refused, at(6.0));
  }
  AttainmentWindow* ended = windows.tick(2, 20.0, at(10.0));
  REQUIRE(ended != nullptr);
  ended->inputs = {1.0};
  // Came at 9 s, told at 12.
  windows.note(served(Millis(750), Millis(1'000), 3), at(12.0));
  CHECK_FALSE(windows.complete(at(14.9)).has_value());
  const auto window = windows.complete(at(15.0));
  REQUIRE(window.has_value());
  CHECK(window->steady);
  CHECK(window->inputs.size() == 1);
  CHECK(window->first.requests == 3.0);
  CHECK(window->first.on_time == 1.0);
  CHECK(window->later.requests == 3.0);
  CHECK(window->later.on_time == doctest::Approx(0.75 + 1.0));
}

TEST_CASE("a window waits for enough requests, and one whose workers changed is not steady") {
  AttainmentWindows windows({Millis(10'000), Millis(0)});
  CHECK(windows.tick(1, 0.0, at(0.0)) == nullptr);
  CHECK(windows.tick(1, 3.0, at(10.0)) == nullptr);
  CHECK(windows.tick(2, 7.0, at(59.5)) == nullptr);
  CHECK(windows.tick(2, 7.0, at(60.0)) != nullptr);
  CHECK_FALSE(windows.complete(at(60.0))->steady);
  CHECK(windows.tick(2, 15.0, at(70.0)) != nullptr);
  CHECK(windows.complete(at(70.0))->steady);
}

TEST_CASE("use is the mean over time of each worker, summed") {
  UsedDemand used;
  LoadDelta delta;
  delta.seconds = 0.5;
  for (int i = 0; i < 19; ++i) {  // One letter of twenty is not there.
    delta.compute = i % 2 == 0 ? 0.4 : 0.2;
    used.add(ActorName("worker/1"), delta);
  }
  delta.compute = 0.6;
  for (int i = 0; i < 10; ++i) used.add(ActorName("worker/2"), delta);  // There for half of the time.
  CHECK(used.mean(10.0).compute == doctest::Approx((10 * 0.4 + 9 * 0.2) / 19.0 + 0.3));
  CHECK(used.workers(10.0) == doctest::Approx(1.5));
  used.reset();
  CHECK(used.mean(10.0).compute == 0.0);
}

TEST_CASE("intervals adapt to nine hits in ten, whatever the errors are like") {
  std::mt19937_64 random(8);
  std::student_t_distribution<double> heavy(2.0);
  AdaptiveInterval interval;
  int hits = 0;
  for (int i = 0; i < 5'000; ++i) {
    const bool covered = std::abs(3.0 * heavy(random)) <= kInterval90 * interval.factor();
    interval.note(covered);
    hits += covered ? 1 : 0;
  }
  CHECK(near(hits / 5'000.0, 0.9, 0.01));
}

TEST_CASE("a score is of the latest errors") {
  Calibration calibration;
  CHECK(calibration.score().count == 0);
  for (int i = 0; i < 10; ++i) calibration.note(i, i < 8);
  const ForecastScore score = calibration.score();
  CHECK(score.coverage == doctest::Approx(0.8));
  CHECK(score.error_median == 5.0);
  CHECK(score.error_p90 == 9.0);
  calibration.note(std::nan(""), true);
  CHECK(calibration.score().count == 10);
  for (int i = 0; i < 5'000; ++i) calibration.note(0.5, true);
  CHECK(calibration.score().coverage == 1.0);
  CHECK(calibration.score().error_p90 == 0.5);
}
