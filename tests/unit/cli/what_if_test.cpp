// Snapshots as they are read, what changes make of them, and traces held against the figures that they are drawn from.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "cli/what_if.hpp"

using namespace sangam;

namespace {

const char* const kText = R"({
 "models": [
  {"model": "a", "devices": 1, "weights_bytes": 100, "kv_bytes_per_token": 10,
   "traffic": {"requests_per_second": 20, "input_tokens_mean": 80, "input_tokens_deviation": 40,
               "output_tokens_mean": 12, "output_tokens_deviation": 0, "ttft_slo_ms": 200, "tpot_slo_ms": 0},
   "costs": {"step_us": 1000, "prompt_us": 50, "prompt_token_us": 30, "sequence_us": 40, "context_token_us": 0.5, "settled": true}},
  {"model": "b", "devices": 1, "weights_bytes": 100, "kv_bytes_per_token": 10,
   "traffic": {"requests_per_second": 5, "input_tokens_mean": 10, "input_tokens_deviation": 2,
               "output_tokens_mean": 4, "output_tokens_deviation": 2, "ttft_slo_ms": 0, "tpot_slo_ms": 0},
   "costs": {"step_us": 1000, "prompt_us": 50, "prompt_token_us": 30, "sequence_us": 40, "context_token_us": 0.5, "settled": true}},
  {"model": "asleep", "devices": 1, "weights_bytes": 100, "kv_bytes_per_token": 10, "traffic": null, "costs": null}],
 "workers": [
  {"worker": "worker/1", "incarnation": 1, "sequence": 9, "devices": 1, "memory_bytes": 2000000, "up_us": 5, "busy_us": 4, "steps": 3,
   "instances": [{"model": "a", "residency": "active", "prefill_tokens": 1, "output_tokens": 2, "context_tokens": 3},
                 {"model": "b", "residency": "active", "prefill_tokens": 1, "output_tokens": 2, "context_tokens": 3}]},
  {"worker": "worker/2", "incarnation": 1, "sequence": 9, "devices": 1, "memory_bytes": 1000000, "up_us": 5, "busy_us": 4, "steps": 3,
   "instances": [{"model": "a", "residency": "warm", "prefill_tokens": 0, "output_tokens": 0, "context_tokens": 0}]}]})";

Situation situation() {
  const auto snapshot = parse_snapshot(kText, "s.json");
  REQUIRE(snapshot.has_value());
  const auto situation = situation_of(*snapshot);
  REQUIRE(situation.has_value());
  return *situation;
}

/// The refusal's text behind the change itself.
std::string refusal(const std::string& change) {
  Situation changed = situation();
  const auto applied = apply_change(changed, change);
  REQUIRE_FALSE(applied.has_value());
  return applied.error().context;
}

std::string without(std::string text, const std::string& piece) {
  text.erase(text.find(piece), piece.size());
  return text;
}

}  // namespace

TEST_CASE("a snapshot is what is asked for, where it may run, and what it costs") {
  const Situation now = situation();
  REQUIRE(now.models.size() == 2);  // Nobody asks for the third.
  CHECK(now.models[0].traffic->ttft_slo == Millis(200));
  CHECK(now.models[1].costs->context_token == 0.5);
  CHECK(now.workers == std::map<std::int64_t, std::int64_t>{{1, 2}});
  CHECK(now.memory == Bytes(1'000'000));
  CHECK_FALSE(now.everywhere);
  const auto scenario = scenario_of(now);
  REQUIRE(scenario.has_value());
  CHECK_FALSE(scenario->fixed);
  CHECK(scenario->models[0].prefill(Tokens(10)) == doctest::Approx(1000 + 50 + 40 + 300));
  CHECK(scenario->clients.objectives[0].ttft == Millis(200));
}

TEST_CASE("a broken snapshot is refused with its place and field") {
  const auto error = [](const std::string& text) { return parse_snapshot(text, "s.json").error().context; };
  CHECK(error("{").find("s.json") == 0);
  CHECK(error("{}").find("s.json: models: is missing; take it from `sangam ctl snapshot`") == 0);
  CHECK(error(without(kText, R"("step_us": 1000, )")).find("models[0].costs: step_us: is missing") != std::string::npos);
  CHECK(error(without(kText, R"("memory_bytes": 2000000, )")).find("workers[0]: memory_bytes: is missing") != std::string::npos);
  Snapshot nobody = *parse_snapshot(kText, "s.json");
  for (SnapshotModel& model : nobody.models) model.traffic.reset();
  CHECK(situation_of(nobody).error().context.find("[oracle]") != std::string::npos);
}

TEST_CASE("changes do what they say, one after the other") {
  Situation changed = situation();
  for (const char* change : {"rate=3", "rate a=0.5", "workers=+2", "slo=0.5", "control=blitzscale"}) {
    CAPTURE(change);
    CHECK(apply_change(changed, change).has_value());
  }
  CHECK(changed.models[0].traffic->requests_per_second == doctest::Approx(30.0));
  CHECK(changed.models[1].traffic->requests_per_second == doctest::Approx(15.0));
  CHECK(changed.workers.at(1) == 4);
  CHECK(changed.slo == 0.5);
  CHECK(changed.control == "blitzscale");
  CHECK(apply_change(changed, "workers=-3").has_value());
  CHECK(changed.workers.at(1) == 1);
  CHECK(apply_change(changed, "workers=7").has_value());
  CHECK(changed.workers.at(1) == 7);
  CHECK(apply_change(changed, "remove a").has_value());
  REQUIRE(changed.models.size() == 1);
  CHECK(changed.models[0].id == ModelId("b"));
}

TEST_CASE("a change that means nothing is refused with what would") {
  CHECK(refusal("rate").find("as 'rate=3'") != std::string::npos);
  CHECK(refusal("rate=0").find("above 0") != std::string::npos);
  CHECK(refusal("rate=3x").find("as 'rate=3'") != std::string::npos);
  CHECK(refusal("rate c=2").find("these are: a, b") != std::string::npos);
  CHECK(refusal("workers=-2").find("at least one must stay") != std::string::npos);
  CHECK(refusal("workers=").find("'workers=+2'") != std::string::npos);
  CHECK(refusal("remove asleep").find("these are: a, b") != std::string::npos);
  CHECK(refusal("control=magic").find("blitzscale") != std::string::npos);
  CHECK(refusal("faster").find("'remove MODEL'") != std::string::npos);
}

TEST_CASE("a trace has the rates, means and deviations that the snapshot tells") {
  const sim::Trace trace = trace_of(situation(), 1'000.0, 1);
  CHECK(trace.apps == std::vector<std::string>{"a", "b"});
  double count = 0.0, input = 0.0, squares = 0.0;
  Micros last{0};
  for (const sim::TraceRequest& request : trace.requests) {
    CHECK(request.arrival >= last);
    last = request.arrival;
    if (request.app != 0) continue;
    ++count;
    input += double(request.input.count());
    squares += double(request.input.count() * request.input.count());
    CHECK(request.output == Tokens(12));
  }
  CHECK(last < Micros(1'000'000'000));
  // Poisson: 20,000 with a deviation of 141; the mean of 20,000 lengths has one of 0.3.
  CHECK(std::abs(count - 20'000.0) < 5.0 * 141.0);
  CHECK(std::abs(input / count - 80.0) < 1.5);
  CHECK(std::abs(std::sqrt(squares / count - std::pow(input / count, 2.0)) - 40.0) < 3.0);
}

TEST_CASE("a change of one model leaves the requests of the others as they were") {
  Situation changed = situation();
  REQUIRE(apply_change(changed, "rate b=4").has_value());
  const auto of_a = [](const sim::Trace& trace) {
    std::vector<std::int64_t> all;
    for (const sim::TraceRequest& request : trace.requests) {
      if (request.app == 0) all.push_back(request.arrival.count() + request.input.count());
    }
    return all;
  };
  CHECK(of_a(trace_of(situation(), 60.0, 1)) == of_a(trace_of(changed, 60.0, 1)));
}

TEST_CASE("eight workers serve on time what one does not") {
  Situation now = situation();
  now.memory = Bytes(1'000'000'000);
  now.everywhere = true;
  REQUIRE(apply_change(now, "rate=30").has_value());
  REQUIRE(apply_change(now, "workers=1").has_value());
  const auto late = [](const Situation& what) {
    const auto run = sim::simulate(*scenario_of(what), trace_of(what, 5.0, 1));
    std::int64_t late = 0;
    for (const sim::RequestRecord& record : run.measured.records) late += record.late.count();
    return late;
  };
  // Prompts alone take 600 x 3.5 ms and 150 x 1.4 ms of each second: too much for one worker, and little for eight.
  CHECK(late(now) > 1'000);
  REQUIRE(apply_change(now, "workers=8").has_value());
  CHECK(late(now) == 0);
}
