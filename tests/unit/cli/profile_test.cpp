// What is made of a worker's counts: the grid, the differences, the fit against known laws, and the profiles' files.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "cli/profile/profile_file.hpp"
#include "cli/profile/snapshot_change.hpp"

using namespace sangam;

namespace {

namespace fs = std::filesystem;

const ModelId kModel("org/m");
const ModelId kOther("other");

/// Microseconds: step, prompt, token of it, token made, token read.
struct Law {
  double step, prompt, prompt_token, sequence, context_token;
};

/// The work of each point of the grid, as such a model does it: a prompt in a step of its own, then all streams in
/// each step. `noise`: the factor of the time.
template <class Noise>
std::vector<WorkSample> played(const Law& law, int rounds, Noise noise) {
  std::vector<WorkSample> samples;
  GridLimits limits;
  limits.context = Tokens(256);
  for (int round = 0; round < rounds; ++round) {
    for (const GridPoint& point : grid_of(limits)) {
      const double streams = double(point.streams), input = double(point.input.count());
      const double later = double(point.output.count() - 1);
      WorkSample sample;
      sample.steps = streams + later;
      sample.prompts = streams;
      sample.prefill_tokens = streams * input;
      sample.output_tokens = streams * (1.0 + later);
      sample.context_tokens = streams * (later * input + later * (later + 1.0) / 2.0);
      const double micros = law.step * sample.steps + law.prompt * sample.prompts + law.prompt_token * sample.prefill_tokens +
                            law.sequence * sample.output_tokens + law.context_token * sample.context_tokens;
      sample.seconds = micros * noise() / 1e6;
      samples.push_back(sample);
    }
  }
  return samples;
}

SnapshotWorker worker(const std::string& name, std::int64_t steps, std::int64_t busy, std::vector<SnapshotInstance> instances) {
  SnapshotWorker worker;
  worker.worker = ActorName(name);
  worker.incarnation = 1;
  worker.steps = steps;
  worker.busy = Micros(busy);
  worker.instances = std::move(instances);
  return worker;
}

class Folder {
 public:
  Folder() : path(fs::temp_directory_path() / ("sangam-profiles-" + std::to_string(getpid()))) { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

/// The complaint about a file with this text, from its name on.
std::string complaint(const std::string& text) {
  const Folder folder;
  std::ofstream(folder.path / "m.json") << text;
  const auto profile = read_profile(folder.path / "m.json");
  REQUIRE_FALSE(profile.has_value());
  return profile.error().context.substr(profile.error().context.find("m.json"));
}

std::string with_costs(const std::string& costs) {
  return R"({"model":"m","devices":1,"weights_bytes":1,"kv_bytes_per_token":1,"costs":)" + costs + "}";
}

}  // namespace

TEST_CASE("without noise each cost is found as it is") {
  const FittedCosts costs = fit_costs(played({900.0, 50.0, 7.0, 30.0, 0.04}, 2, [] { return 1.0; }), 1);
  CHECK(costs.step.value == doctest::Approx(900.0));
  CHECK(costs.prompt.value == doctest::Approx(50.0));
  CHECK(costs.prompt_token.value == doctest::Approx(7.0));
  CHECK(costs.sequence.value == doctest::Approx(30.0));
  CHECK(costs.context_token.value == doctest::Approx(0.04));
  CHECK(costs.r2 == doctest::Approx(1.0));
  CHECK(costs.context_token.is_told());
}

TEST_CASE("steps that stalled do not spoil the fit, and true values lie within the spread") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(1.0, 0.02);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  const auto noise = [&] { return normal(random) * (uniform(random) < 0.1 ? 5.0 : 1.0); };
  const FittedCosts costs = fit_costs(played({900.0, 300.0, 7.0, 30.0, 0.2}, 12, noise), 1);
  const std::pair<FittedCost, double> truths[] = {{costs.step, 900.0}, {costs.prompt_token, 7.0}, {costs.sequence, 30.0}, {costs.context_token, 0.2}};
  for (const auto& [cost, truth] : truths) {
    CAPTURE(truth);
    CHECK(std::abs(cost.value / truth - 1.0) < 0.1);
    CHECK(cost.low <= cost.value);
    CHECK(cost.value <= cost.high);
    CHECK(cost.is_told());
  }
}

TEST_CASE("what costs nothing cannot be told from nothing, and is never negative") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(1.0, 0.05);
  const FittedCosts costs = fit_costs(played({1000.0, 0.0, 5.0, 40.0, 0.0}, 6, [&] { return normal(random); }), 1);
  CHECK_FALSE(costs.context_token.is_told());
  CHECK_FALSE(costs.prompt.is_told());
  CHECK(costs.context_token.value >= 0.0);
  CHECK(costs.step.is_told());
}

TEST_CASE("every load of the grid fits the context, however short") {
  for (const std::int64_t context : {2, 16, 256, 100'000}) {
    GridLimits limits;
    limits.context = Tokens(context);
    limits.workers = 2;
    limits.streams = 3;
    for (const GridPoint& point : grid_of(limits)) {
      CAPTURE(context);
      CHECK(point.input >= Tokens(1));
      CHECK(point.output >= Tokens(1));
      CHECK(point.input + point.output <= Tokens(context));
      CHECK(point.streams <= 6);
    }
  }
}

TEST_CASE("a worker's counts between two snapshots are a sample, unless its steps were not the model's alone") {
  Snapshot before;
  before.workers = {worker("worker/1", 10, 1'000, {{kModel, true, 100, 20, 500}, {kOther, true, 7, 7, 7}}),
                    worker("worker/2", 0, 0, {{kModel, true, 0, 0, 0}, {kOther, true, 7, 7, 7}}),
                    worker("worker/3", 5, 50, {{kModel, true, 50, 5, 5}})};
  Snapshot after;
  after.workers = {worker("worker/1", 30, 9'000, {{kModel, true, 148, 50, 900}, {kOther, true, 7, 7, 7}}),
                   worker("worker/2", 9, 90, {{kModel, true, 16, 9, 9}, {kOther, true, 8, 7, 7}}),
                   worker("worker/3", 9, 90, {{kModel, true, 66, 9, 9}}),
                   worker("worker/4", 9, 90, {{kModel, true, 16, 9, 9}})};
  after.workers[2].incarnation = 2;
  const auto samples = work_between(before, after, kModel, Tokens(16));
  REQUIRE(samples.size() == 1);
  CHECK(samples[0].steps == 20.0);
  CHECK(samples[0].prompts == 3.0);
  CHECK(samples[0].prefill_tokens == 48.0);
  CHECK(samples[0].output_tokens == 30.0);
  CHECK(samples[0].context_tokens == 400.0);
  CHECK(samples[0].seconds == doctest::Approx(0.008));
}

TEST_CASE("a profile is read as it was written") {
  const Folder folder;
  Profile profile;
  profile.model = kModel;
  profile.measured = "noon";
  profile.devices = 2;
  profile.weights = Bytes(123);
  profile.kv_per_token = Bytes(45);
  profile.request_us = 400.0;
  profile.costs.step = {900.0, 890.0, 910.0};
  profile.costs.sequence = {30.0, 0.0, 60.0};
  profile.samples = {{20.0, 3.0, 48.0, 30.0, 400.0, 0.008}};
  const fs::path file = profile_path(folder.path, kModel);
  CHECK(file.filename() == "org--m.json");
  std::ofstream(file) << profile_json(profile);
  const auto read = read_profiles(folder.path);
  REQUIRE(read.has_value());
  REQUIRE(read->size() == 1);
  const Profile& same = read->front();
  CHECK(same.model == kModel);
  CHECK(same.devices == 2);
  CHECK(same.request_us == 400.0);
  CHECK(same.costs.step.low == 890.0);
  CHECK_FALSE(same.costs.sequence.is_told());
  REQUIRE(same.samples.size() == 1);
  CHECK(same.samples[0].seconds == doctest::Approx(0.008));
  const ModelPrior prior = same.prior();
  CHECK(prior.step_fixed == doctest::Approx(0.0009));
  CHECK(prior.samples.size() == 1);
  // A prefill of the simulator is the step of one prompt and its first token.
  CHECK(same.spec().prefill_fixed == doctest::Approx(930.0));
  CHECK(same.spec().step(2.0, 0.0) == doctest::Approx(960.0));
}

TEST_CASE("a bad profile is refused with file, field and a remedy") {
  CHECK(complaint("{").find("sangam profile") != std::string::npos);
  CHECK(complaint("{}").find("m.json: model: is missing") == 0);
  CHECK(complaint(with_costs("{}")).find("m.json: costs: step_us: is missing") == 0);
  const std::string good = R"({"step_us":1,"prompt_us":0,"prompt_token_us":1,"sequence_us":1,"context_token_us":)";
  CHECK(complaint(with_costs(good + "-1}")).find("m.json: costs: context_token_us = -1: must be a number from 0") == 0);
  CHECK(complaint(with_costs(good + R"({"low":1}})")).find("m.json: costs.context_token_us: value: is missing") == 0);
  const Folder folder;
  CHECK(read_profiles(folder.path).error().context.find("sangam profile MODEL --store") != std::string::npos);
  for (const char* name : {"a.json", "b.json"}) std::ofstream(folder.path / name) << with_costs(good + "0}");
  const auto twice = read_profiles(folder.path);
  REQUIRE_FALSE(twice.has_value());
  CHECK(twice.error().context.find("b.json: model: 'm' has a profile already") != std::string::npos);
}
