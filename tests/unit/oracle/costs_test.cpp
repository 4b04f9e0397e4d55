// Step costs from the counts of played steps, and the operating point against a worker that is played.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "actors/oracle/capacity.hpp"
#include "actors/oracle/cost_fit.hpp"
#include "actors/oracle/lbfgs.hpp"
#include "actors/oracle/worker_costs.hpp"
#include "tests/unit/oracle/played_mesh.hpp"

using namespace sangam;

namespace {

const ModelId kModel{"m"};

/// Within a part of the expected value; doctest's own tolerance adds a constant.
bool near(double value, double expected, double part) {
  return std::abs(value - expected) <= part * std::abs(expected);
}

/// One worker that is played for `seconds` under `law`; what it did, and what came.
struct Played {
  LoadDelta done;
  double step = 0.0;  ///< Seconds between tokens, in the mean over answers.
  double kv_bytes = 0.0;
  Traffic traffic;
};

Played play(const played::StepLaw& law, const played::Demand& demand, double seconds, WorkerCosts* learner) {
  played::PlayedMesh mesh(kModel, law, played::Device{}, demand, 3);
  mesh.set_workers(1);
  Played result;
  Telemetry last = mesh.telemetry().at(0);
  const Telemetry first = last;
  double tokens = 0.0;
  QueueStatus status;
  for (double now = 0.5; now <= seconds; now += 0.5) {
    mesh.play(now);
    const Telemetry next = mesh.telemetry().at(0);
    status = mesh.queue_status();
    const ModelLoad& a = last.models[0];
    const ModelLoad& b = next.models[0];
    LoadDelta delta;
    delta.seconds = 0.5;
    delta.steps = double(next.steps - last.steps);
    delta.prefill_tokens = double(b.prefill_tokens - a.prefill_tokens);
    delta.output_tokens = double(b.output_tokens - a.output_tokens);
    delta.decode_steps = double(b.decode_steps - a.decode_steps);
    delta.context_tokens = double(b.context_tokens - a.context_tokens);
    delta.busy = std::chrono::duration<double>(b.prefill_time + b.decode_time - a.prefill_time - a.decode_time).count();
    if (learner != nullptr) learner->learn(delta);
    result.kv_bytes += double(b.kv_used.count()) * played::Device{}.page * 0.5 / seconds;
    for (const ServedRequest& r : mesh.served().requests) {
      result.step += double(r.output.count() - 1) * double(r.tpot.count()) / 1e6;
      tokens += double(std::max<std::int64_t>(0, r.output.count() - 1));
    }
    last = next;
  }
  result.step /= tokens;
  result.done.steps = double(last.steps - first.steps);
  const double n = double(status.arrived);
  result.traffic = {double(status.input_tokens) / seconds, n / seconds, double(status.input_tokens) / n, 0, 0, 0};
  Traffic& t = result.traffic;
  t.input_variance = status.input_tokens_squared / n - t.input_mean * t.input_mean;
  t.output_mean = double(status.output_tokens) / double(status.ended);
  t.output_variance = status.output_tokens_squared / double(status.ended) - t.output_mean * t.output_mean;
  return result;
}

played::Demand steady(double rate) {
  played::Demand demand;
  demand.rate = rate;
  demand.period = demand.burst_every = 1e12;  // Neither tide nor bursts.
  demand.ttft_fixed = 1e3;
  return demand;
}

}  // namespace

TEST_CASE("step costs are found from counts and times") {
  std::mt19937_64 random(2);
  const CostFit::Vector law{0.012, 7e-5, 3e-4, 5e-7};
  CostFit fit({0.02, 2e-4, 1e-4, 1e-8}, {1.0, 256.0, 4.0, 4096.0});
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (int i = 0; i < 400; ++i) {
    const CostFit::Vector counts{5.0 + 30.0 * uniform(random), 5'000.0 * uniform(random), 200.0 * uniform(random),
                                 300'000.0 * uniform(random)};
    double seconds = 0.0;
    for (std::size_t k = 0; k < law.size(); ++k) seconds += law[k] * counts[k];
    fit.learn(counts, seconds * (0.98 + 0.04 * uniform(random)));
  }
  CHECK(near(fit.coefficients()[0], law[0], 0.03));
  CHECK(near(fit.coefficients()[1], law[1], 0.03));
  CHECK(near(fit.coefficients()[2], law[2], 0.05));
  CHECK(near(fit.coefficients()[3], law[3], 0.05));
}

TEST_CASE("a cost that cannot be positive is zero, and without measurements the prior holds") {
  CostFit fit({1.0, 0.1, 0.0, 0.0}, {1.0, 10.0, 1.0, 1.0});
  CHECK(fit.seconds({2.0, 5.0, 0.0, 0.0}) == doctest::Approx(2.5));
  for (int i = 1; i < 200; ++i) fit.learn({1.0, double(i % 20), 0.0, 0.0}, 30.0 - double(i % 20));
  CHECK(fit.coefficients()[1] == 0.0);
  CHECK(fit.coefficients()[0] > 10.0);
  fit.learn({1.0, 1.0, 0.0, 0.0}, -1.0);
  fit.learn({0.0, 0.0, 0.0, 0.0}, 1.0);
  CHECK(fit.coefficients()[0] > 10.0);
}

TEST_CASE("what was measured before is known from the start, and learning goes on from there") {
  const CostFit::Vector law{0.012, 7e-5, 3e-4, 5e-7};
  const auto seconds = [&](double steps, double prompt_tokens, double made, double read) {
    return law[0] * steps + law[1] * prompt_tokens + law[2] * made + law[3] * read;
  };
  ModelPrior prior;  // Far from the law.
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> uniform(1.0, 30.0);
  for (int i = 0; i < 70; ++i) {
    WorkSample sample{uniform(random), 1.0, 16.0 * uniform(random), 8.0 * uniform(random), 9'000.0 * uniform(random), 0.0};
    sample.seconds = seconds(sample.steps, sample.prefill_tokens, sample.output_tokens, sample.context_tokens);
    prior.samples.push_back(sample);
  }
  WorkerCosts costs(prior);
  CHECK(costs.settled());
  CHECK(near(costs.costs().step, 12'000.0, 0.02));
  CAPTURE(costs.costs().prompt_token);
  CHECK(near(costs.costs().prompt_token, 70.0, 0.2));
  CHECK(near(costs.costs().sequence, 300.0, 0.05));
  LoadDelta slower;  // In service all takes twice as long.
  for (int i = 0; i < 600; ++i) {
    slower.steps = uniform(random);
    slower.prefill_tokens = 16.0 * uniform(random);
    slower.output_tokens = 8.0 * uniform(random);
    slower.context_tokens = 9'000.0 * uniform(random);
    slower.busy = 2.0 * seconds(slower.steps, slower.prefill_tokens, slower.output_tokens, slower.context_tokens);
    costs.learn(slower);
  }
  CHECK(near(costs.costs().step, 24'000.0, 0.1));
}

TEST_CASE("steps, their distance and KV are those of a worker that is played") {
  for (const double rate : {1.0, 3.0, 5.0}) {
    CAPTURE(rate);
    played::StepLaw law;
    WorkerCosts costs{ModelPrior{}};
    const Played played = play(law, steady(rate), 1'000.0, &costs);
    CHECK(costs.settled());
    const OperatingPoint point = costs.operate(played.traffic, 1.0, 0.0);
    CHECK(point.carried == 1.0);
    CHECK(near(point.steps_per_second, played.done.steps / 1'000.0, 0.08));
    CHECK(near(point.step, played.step, 0.12));
    ModelPrior model;
    model.kv_per_token = Bytes(std::int64_t(law.kv_per_token));
    const Demand demand = lawful_demand(played.traffic, point, model, DevicePrior{}, 1.0);
    CHECK(near(demand.kv_bytes, played.kv_bytes, 0.15));
  }
}

TEST_CASE("a worker that is asked for too much carries a part, and enough workers carry all") {
  const WorkerCosts costs{ModelPrior{}};
  const Traffic traffic{40'000.0, 40.0, 1'000.0, 1e5, 50.0, 1e3};
  const OperatingPoint over = costs.operate(traffic, 2.0, 0.0);
  CHECK(over.carried < 0.5);
  CHECK(std::isfinite(over.step));
  CHECK(over.prompt_share <= 1.0);
  const double enough = std::ceil(costs.workers_for(traffic, 0.85));
  CHECK(costs.operate(traffic, enough, 0.0).carried == 1.0);
  CHECK(costs.operate(traffic, enough, 0.5).carried < 1.0);
}

TEST_CASE("the minimiser finds the bottom of Rosenbrock's valley") {
  const Objective valley = [](std::span<const double> x, std::span<double> g) {
    const double a = 1.0 - x[0];
    const double b = x[1] - x[0] * x[0];
    g[0] = -2.0 * a - 400.0 * x[0] * b;
    g[1] = 200.0 * b;
    return a * a + 100.0 * b * b;
  };
  const Minimum minimum = minimise(valley, {-1.2, 1.0}, 200);
  CHECK(near(minimum.x[0], 1.0, 1e-3));
  CHECK(near(minimum.x[1], 1.0, 1e-3));
  const Objective nowhere = [](std::span<const double>, std::span<double> g) {
    g[0] = 1.0;
    return std::nan("");
  };
  CHECK(minimise(nowhere, {3.0}, 10).x[0] == 3.0);
}
