// What the oracle says, to whom and when, and what it makes of workers that fall silent, restart or are lost.
#include "actors/oracle/oracle_core.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace sangam {
namespace {

const ModelId kModel{"m"};
const ActorName kWorker{"worker/1"};
const ActorName kPlacement{"placement"};
const ActorName kAutoscaler{"autoscaler"};

/// Within a part of the expected value; doctest's own tolerance adds a constant.
bool near(double value, double expected, double part) {
  return std::abs(value - expected) <= part * std::abs(expected);
}

Instant at(double seconds) { return Instant(Micros(std::int64_t(seconds * 1e6))); }

OracleOptions options() {
  OracleOptions o;
  o.hearers = {kPlacement, kAutoscaler};
  o.prior.step_fixed = 0.01;
  o.prior.prompt_token = 0.0009;
  o.prior.sequence = 0.0;
  o.prior.context_token = 0.0;
  o.prior.kv_per_token = Bytes(1'000);
  return o;
}

/// The core beside a queue and workers that can be told to speak.
class Stage {
 public:
  explicit Stage(OracleOptions o = options()) : core(std::move(o)) {
    core.start(at(0), out);
    queue.model = kModel;
  }

  /// Half a second with `arrivals` prompts of 100 tokens and as many answers of 10; then the tick.
  void half_second(int arrivals) {
    queue.arrived += std::uint64_t(arrivals);
    queue.input_tokens += std::uint64_t(100 * arrivals);
    queue.input_tokens_squared += 10'000.0 * arrivals;
    queue.ended += std::uint64_t(arrivals);
    queue.output_tokens += std::uint64_t(10 * arrivals);
    queue.output_tokens_squared += 100.0 * arrivals;
    ++queue.sequence;
    tell(queue);
    now += 0.5;
    out.clear();
    core.wake(Timer{1}, at(now), out);
  }
  template <class M>
  void tell(const M& message) {
    core.on(message, at(now), out);
  }
  [[nodiscard]] ModelForecast forecast() const { return std::get<Forecast>(out.letters.at(0).message).models.at(0); }

  Outbox out;
  OracleCore core;
  QueueStatus queue;
  double now = 0.0;
};

Telemetry telemetry(std::uint64_t sequence, std::vector<ModelId> models) {
  Telemetry t;
  t.worker = kWorker;
  t.incarnation = Incarnation{3};
  t.sequence = sequence;
  t.up = Millis(500) * std::int64_t(sequence);
  for (ModelId& model : models) {
    ModelLoad load;
    load.model = std::move(model);
    t.models.push_back(load);
  }
  return t;
}

}  // namespace

TEST_CASE("each half second a forecast of all models goes to each hearer") {
  Stage stage;
  CHECK(stage.out.alarms.at(0).at == at(0.5));
  stage.half_second(4);
  REQUIRE(stage.out.letters.size() == 2);
  CHECK(stage.out.letters[0].to == kPlacement);
  CHECK(stage.out.letters[1].to == kAutoscaler);
  CHECK(stage.out.alarms.at(0).at == at(1.0));
  CHECK(stage.forecast().model == kModel);
  CHECK(stage.forecast().mixed_attainment.size() == 64);
}

TEST_CASE("a model's demand follows from its traffic by the laws") {
  Stage stage;
  for (int i = 0; i < 100; ++i) stage.half_second(1);
  const ModelForecast f = stage.forecast();
  CHECK(near(f.requests_per_second, 2.0, 1e-9));
  CHECK(near(f.input_tokens_per_second, 200.0, 1e-9));
  CHECK(near(f.volatility, 1.0, 1e-9));
  // A prompt of 100 tokens takes 90 ms and one step's 10: of the time, its tokens take 18 %. An answer's ten tokens
  // read 105 each in the mean and are made in steps of 10 ms in what is left of the time.
  CHECK(near(f.compute, 0.18, 1e-9));
  const double step = 0.01 / 0.82;
  CHECK(near(double(f.kv.count()), 2.0 * 1'000 * (0.1 * 100 + step * 10 * 105), 0.001));
}

TEST_CASE("attainment never falls with more workers and reaches one") {
  OracleOptions o = options();
  o.confidence = 0.0;
  Stage stage(o);
  for (int i = 0; i < 40; ++i) stage.half_second(20);  // 40 a second, each 0.1 s: four workers' work.
  const ModelForecast f = stage.forecast();
  CHECK(std::is_sorted(f.mixed_attainment.begin(), f.mixed_attainment.end()));
  CHECK(std::is_sorted(f.decode_attainment.begin(), f.decode_attainment.end()));
  CHECK(near(f.mixed_attainment.at(0), 0.25, 0.1));
  CHECK(f.mixed_attainment.at(11) > 0.95);
  Stage careful;
  for (int i = 0; i < 40; ++i) careful.half_second(20);
  CHECK(careful.forecast().mixed_attainment.at(0) < 0.9 * f.mixed_attainment.at(0));
  CHECK(std::is_sorted(f.mixed_attainment.begin(), f.mixed_attainment.end()));
}

TEST_CASE("telemetry teaches what prefill takes; late letters and old incarnations teach nothing") {
  Stage stage;
  Telemetry t = telemetry(1, {kModel});
  t.compute = 0.2;  // Of its peak, by chance as much as of its time.
  const auto work = [&](double seconds_a_token) {
    ++t.sequence;
    t.up += Millis(500);
    t.models[0].prefill_tokens += 200;
    t.models[0].prefill_time += Micros(std::int64_t(200 * seconds_a_token * 1e6));
  };
  stage.tell(t);
  for (int i = 0; i < 100; ++i) {
    work(0.0005);
    stage.tell(t);
    stage.half_second(2);
  }
  const double learned = stage.forecast().compute;
  CHECK(near(learned, 0.2, 0.02));
  Telemetry strange = t;
  strange.incarnation = Incarnation{2};
  strange.sequence += 100;
  for (int i = 0; i < 50; ++i) {
    strange.up += Millis(500);
    strange.models[0].prefill_tokens += 200;
    strange.models[0].prefill_time += Micros(400'000);
    ++strange.sequence;
    stage.tell(strange);
    Telemetry late = strange;
    late.incarnation = Incarnation{3};
    late.sequence = 5;
    stage.tell(late);
  }
  stage.half_second(2);
  CHECK(near(stage.forecast().compute, learned, 0.02));
}

TEST_CASE("a restarted worker's counts begin anew") {
  Stage stage;
  Telemetry t = telemetry(9, {kModel});
  t.models[0].prefill_tokens = 1'000'000;
  t.models[0].prefill_time = Seconds(1'000);
  stage.tell(t);
  for (int i = 0; i < 80; ++i) stage.half_second(2);
  const double before = stage.forecast().compute;
  REQUIRE(before > 0.1);
  Telemetry anew = telemetry(1, {kModel});
  anew.incarnation = Incarnation{4};
  stage.tell(anew);
  stage.half_second(2);
  CHECK(near(stage.forecast().compute, before, 0.02));
}

TEST_CASE("time that other models use on a worker counts, until the worker is silent or lost") {
  Stage stage;
  Telemetry t = telemetry(1, {kModel, ModelId("other")});
  const auto half_second = [&] {
    stage.half_second(3);
    ++t.sequence;
    t.up += Millis(500);
    t.models[0].prefill_tokens += 300;
    t.models[0].prefill_time += Millis(300);
    t.models[1].prefill_tokens += 200;
    t.models[1].prefill_time += Millis(200);
    t.steps += 5;
    stage.tell(t);
  };
  const auto attainment = [&] {
    const auto& forecast = std::get<Forecast>(stage.out.letters.at(0).message);
    return forecast.models.at(0).mixed_attainment.at(0);
  };
  for (int i = 0; i < 40; ++i) half_second();
  const double shared = attainment();
  SUBCASE("silent") {
    for (int i = 0; i < 20; ++i) stage.half_second(3);
    CHECK(attainment() > shared + 0.05);
  }
  SUBCASE("lost") {
    stage.tell(ActorLost{kWorker, Incarnation{3}, "killed"});
    stage.half_second(3);
    CHECK(attainment() > shared + 0.05);
  }
}

TEST_CASE("clients' inventions are no models, and the number of models is bounded") {
  OracleOptions o = options();
  o.models_max = 2;
  Stage stage(o);
  ServedRequest request;
  request.model = ModelId("no such model");
  stage.tell(Served{ActorName("gateway/1"), {request}});
  QueueStatus other = stage.queue;
  for (const char* name : {"a", "b", "c"}) {
    other.model = ModelId(name);
    other.sequence = 1;
    stage.tell(other);
  }
  REQUIRE(stage.out.logs.size() == 1);
  CHECK(stage.out.logs[0].event == "oracle.model_ignored");
  stage.now += 0.5;
  stage.out.clear();
  stage.core.wake(Timer{1}, at(stage.now), stage.out);
  CHECK(std::get<Forecast>(stage.out.letters.at(0).message).models.size() == 2);
}

}  // namespace sangam
