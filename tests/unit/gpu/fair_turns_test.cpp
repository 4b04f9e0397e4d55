// Several models on one engine: each gets its time, its places and its pages, whatever the others ask for.
#include "gpu/engine/fair_turns.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/unit/gpu/scripted_engine.hpp"

using namespace sangam;

namespace {

/// What a step of a model costs: so much, and so much a row.
struct Cost {
  std::int64_t fixed = 0;
  std::int64_t per_row = 0;
};

struct Step {
  std::size_t model = 0;
  std::int64_t rows = 0;
  std::int64_t micros = 0;
  std::vector<bool> had_work;  // by model, when it began
};

ModelId name_of(std::size_t model) {
  return ModelId("model " + std::to_string(model));
}

/// An engine whose steps take the time that their rows cost, and tell it.
class Shared {
 public:
  Shared(EngineOptions options, const std::vector<Cost>& costs, std::int64_t pages = 400)
      : bench_(options, pages), costs_(costs) {
    for (std::size_t i = 0; i < costs.size(); ++i) bench_.load(name_of(i), {.context = 2000, .salt = i});
  }

  void add(std::size_t model, std::int64_t prompt, std::int64_t output) {
    Run run = request(++requests_, prompt, output);
    run.model = name_of(model);
    REQUIRE(bench_.engine().add(run));
  }

  [[nodiscard]] std::int64_t live(std::size_t model) {
    const RosterCount count = bench_.engine().stats(name_of(model)).count;
    return count.running + count.waiting;
  }

  Step step() {
    Step step;
    for (std::size_t i = 0; i < costs_.size(); ++i) step.had_work.push_back(live(i) > 0);
    const std::size_t steps = bench_.steps().size();
    bench_.step();
    REQUIRE(bench_.steps().size() == steps + 1);
    step.model = std::size_t(bench_.steps().back().salt);
    step.rows = bench_.steps().back().rows;
    step.micros = costs_[step.model].fixed + costs_[step.model].per_row * step.rows;
    bench_.engine().charge(Micros(step.micros));
    return step;
  }

  ScriptedEngine& bench() { return bench_; }
  [[nodiscard]] std::uint64_t last_request() const { return requests_; }
  RosterCount count(std::size_t model) { return bench_.engine().stats(name_of(model)).count; }

 private:
  ScriptedEngine bench_;
  std::vector<Cost> costs_;
  std::uint64_t requests_ = 0;
};

/// Bursts and pauses of all models, at random.
std::vector<Step> random_steps(const std::vector<Cost>& costs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Shared shared({.running_max = 1000, .step_tokens = Tokens{100}}, costs, 4000);
  std::vector<Step> steps;
  shared.add(0, 50, 5);
  for (int i = 0; i < 1500; ++i) {
    const std::size_t model = random() % costs.size();
    const bool burst = random() % 40 == 0;
    for (int count = burst ? 8 : int(random() % 12 == 0); count > 0; --count)
      shared.add(model, std::int64_t(1 + random() % 300), std::int64_t(1 + random() % 20));
    if (shared.bench().engine().has_work()) steps.push_back(shared.step());
  }
  return steps;
}

std::vector<std::int64_t> longest_by_model(const std::vector<Step>& steps, std::size_t models) {
  std::vector<std::int64_t> longest(models, 0);
  for (const Step& step : steps) longest[step.model] = std::max(longest[step.model], step.micros);
  return longest;
}

/// While both have work, neither gets ahead of the other by more than their longest steps together.
void check_shares(const std::vector<Step>& steps, std::size_t a, std::size_t b, std::int64_t bound) {
  std::int64_t ahead = 0, lowest = 0, highest = 0;
  for (const Step& step : steps) {
    if (!step.had_work[a] || !step.had_work[b]) {
      ahead = lowest = highest = 0;
      continue;
    }
    ahead += step.model == a ? step.micros : step.model == b ? -step.micros : 0;
    lowest = std::min(lowest, ahead);
    highest = std::max(highest, ahead);
    REQUIRE(highest - lowest <= bound);
  }
}

/// No model with work waits longer than the header says.
void check_waits(const std::vector<Step>& steps, std::size_t model,
                 const std::vector<std::int64_t>& longest) {
  std::int64_t longest_other = 0;
  for (std::size_t i = 0; i < longest.size(); ++i)
    if (i != model) longest_other = std::max(longest_other, longest[i]);
  const auto others = std::int64_t(longest.size()) - 1;
  std::int64_t waited = 0;
  std::int64_t own_last = 0;  // counts after a pause too: the others may not have caught up with it
  for (const Step& step : steps) {
    if (!step.had_work[model] || step.model == model) {
      waited = 0;
      if (step.had_work[model]) own_last = step.micros;
      continue;
    }
    waited += step.micros;
    REQUIRE(waited <= others * (own_last + longest_other));
  }
}

}  // namespace

TEST_CASE("models at work get equal time and wait no longer than promised, whatever bursts the others have") {
  const std::vector<Cost> costs{{200, 100}, {3000, 5}, {50, 10}, {1000, 300}};
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    CAPTURE(seed);
    const std::vector<Step> steps = random_steps(costs, seed);
    CHECK(steps.size() > 1000);
    const std::vector<std::int64_t> longest = longest_by_model(steps, costs.size());
    for (std::size_t a = 0; a < costs.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) check_shares(steps, a, b, longest[a] + longest[b]);
      check_waits(steps, a, longest);
    }
  }
}

TEST_CASE("to be idle gives no credit") {
  FairTurns turns(Micros{0});
  const std::vector<ModelId> one{ModelId("a")};
  const std::vector<ModelId> both{ModelId("a"), ModelId("b")};
  for (int i = 0; i < 100; ++i) {
    CHECK(turns.next(one) == ModelId("a"));
    turns.charge(1, Micros{1000});
  }
  std::map<ModelId, int> steps;
  for (int i = 0; i < 20; ++i) {
    ++steps[turns.next(both)];
    turns.charge(1, Micros{1000});
  }
  CHECK(steps[ModelId("a")] == 10);
  CHECK(steps[ModelId("b")] == 10);
}

TEST_CASE("a model whose steps are ten times as long has a tenth of the steps") {
  FairTurns turns(Micros{0});
  const std::vector<ModelId> both{ModelId("a"), ModelId("b")};
  std::map<ModelId, int> steps;
  for (int i = 0; i < 110; ++i) {
    const ModelId name = turns.next(both);
    ++steps[name];
    turns.charge(1, Micros{name == ModelId("a") ? 1000 : 100});
  }
  CHECK(steps[ModelId("a")] == 10);
  CHECK(steps[ModelId("b")] == 100);
}

TEST_CASE("while others have work, a step of a burst fits the limit; alone it has all its rows") {
  const std::vector<Cost> costs{{300, 100}, {2000, 3}};
  Shared shared({.running_max = 40, .step_tokens = Tokens{512}, .shared_step_max = Micros{5000}}, costs);
  shared.add(1, 4, 300);
  for (int i = 0; i < 20; ++i) shared.add(0, 1500, 2);
  std::int64_t largest = 0;
  for (int i = 0; i < 200; ++i) {
    const Step step = shared.step();
    REQUIRE(step.had_work[1]);
    REQUIRE(step.micros <= 5000);
    if (step.model == 0) largest = std::max(largest, step.rows);
  }
  CHECK(largest >= 45);  // 300 + 47 * 100 = 5000; whole rows stop a little before
  while (shared.live(1) > 0) (void)shared.step();
  CHECK(shared.step().rows == 512);
}

TEST_CASE("a limit that was learned from cheaper steps falls to what fits") {
  RowLimit limit;
  limit.learn(10, Micros{1000}, Micros{5000});
  CHECK(limit.rows() == 50);
  limit.learn(50, Micros{10000}, Micros{5000});
  CHECK(limit.rows() == 25);
  limit.learn(1, Micros{9000}, Micros{5000});
  CHECK(limit.rows() == 1);
}

TEST_CASE("the first request of a model does not wait for another model's burst") {
  Shared shared({.running_max = 4}, {{100, 10}, {100, 10}});
  for (int i = 0; i < 200; ++i) shared.add(0, 30, 50);
  for (int i = 0; i < 10; ++i) (void)shared.step();
  CHECK(shared.count(0).running == 4);
  shared.add(1, 30, 50);
  const std::uint64_t newcomer = shared.last_request();
  (void)shared.step();
  (void)shared.step();
  (void)shared.step();
  CHECK(shared.count(1).running == 1);
  CHECK(shared.count(0).running == 3);
  CHECK_FALSE(shared.bench().told(newcomer).tokens.empty());
}

TEST_CASE("bursts of two models have half of the places each, though one came first") {
  Shared shared({.running_max = 8}, {{100, 10}, {100, 10}});
  for (int i = 0; i < 60; ++i) shared.add(0, 30, 40);
  for (int i = 0; i < 10; ++i) (void)shared.step();
  for (int i = 0; i < 60; ++i) shared.add(1, 30, 40);
  for (int i = 0; i < 300; ++i) {
    (void)shared.step();
    REQUIRE(shared.bench().steps().back().sequences == 4);
  }
  // Each request was thrown out once at most: when the second burst came.
  CHECK(shared.count(0).preemptions + shared.count(1).preemptions == 4);
}

TEST_CASE("with a single place models are served in turn, request by request") {
  Shared shared({.running_max = 1}, {{100, 10}, {100, 10}});
  for (int i = 0; i < 6; ++i) shared.add(0, 10, 3);
  for (int i = 0; i < 6; ++i) shared.add(1, 10, 3);
  std::vector<std::size_t> order;
  while (shared.bench().engine().has_work()) order.push_back(shared.step().model);
  REQUIRE(order.size() == 36);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == i / 3 % 2);
}

TEST_CASE("a burst that holds all pages gives up what another model's first request needs") {
  Shared shared({.running_max = 16}, {{100, 10}, {100, 10}}, 8);
  for (int i = 0; i < 8; ++i) shared.add(0, 200, 200);  // 1 page each, later 2
  for (int i = 0; i < 3; ++i) (void)shared.step();
  CHECK(shared.count(0).pages >= Pages{4});
  shared.add(1, 1200, 10);  // 5 pages
  const std::uint64_t newcomer = shared.last_request();
  for (int i = 0; i < 10; ++i) (void)shared.step();
  CHECK(shared.count(1).pages == Pages{5});
  CHECK(shared.count(0).running >= 1);
  while (shared.bench().engine().has_work()) (void)shared.step();
  CHECK(shared.bench().told(newcomer).tokens.size() == 10);
  for (std::uint64_t i = 1; i < newcomer; ++i) CHECK(shared.bench().told(i).tokens.size() == 200);
}
