// Two whole workers and a holder: a run that is handed over says what it would have said, and pages are given back.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/worker/engine_runner.hpp"
#include "tests/unit/gpu_residency/store_house.hpp"

using namespace sangam;

namespace {

const ModelId kDate("A-date");

struct Told {
  std::vector<TokenId> tokens;
  std::vector<double> logprobs;
  FinishReason finish = FinishReason::none;

  bool operator==(const Told&) const = default;
};

struct Worker {
  Worker(const StoreHouse& store, const std::string& name, const std::string& isa = "best", Bytes page = Bytes{64 << 10}) {
    WorkerOptions options;
    options.name = ActorName(name);
    options.models = {{kDate, SANGAM_SOURCE_DIR "/models/A-date"}};
    options.pool_bytes = Bytes{16 << 20};
    options.page_bytes = page;
    options.threads = 1;
    options.isa = isa;
    options.holder = store.socket();
    runner = make_engine_runner(options).value();
    REQUIRE(runner->begin({kDate, Residency::active, {}}));
    while (!runner->advance(false).value()) {
    }
  }

  void run_dry() {
    while (runner->has_work()) {
      for (const TokensProduced& produced : runner->step().produced) {
        told.tokens.insert(told.tokens.end(), produced.tokens.begin(), produced.tokens.end());
        for (const PositionLogprobs& position : produced.logprobs) told.logprobs.push_back(position.chosen.logprob);
        told.finish = produced.finish;
      }
    }
  }

  std::unique_ptr<Runner> runner;
  Told told;
};

Run ask(double temperature) {
  Run run;
  run.request = RequestId{1};
  run.model = kDate;
  run.prompt = {257};
  for (int i = 0; i < 90; ++i) run.prompt.push_back(TokenId('0' + i % 10));  // more than one page
  run.sampling.temperature = temperature;
  run.sampling.seed = 5;
  run.sampling.logprobs = 0;
  run.sampling.max_tokens = Tokens{60};
  run.sampling.ignore_eos = true;
  return run;
}

/// Until the first token; what it offers.
HandOver prefilled(Worker& giver, const Run& run) {
  REQUIRE(giver.runner->add_prefill(run));
  giver.run_dry();
  REQUIRE(giver.told.tokens.size() == 1);
  HandOver letter{.run = run, .said = {}, .from = ActorName("worker/1"), .incarnation = Incarnation{1}};
  letter.run.generated = giver.told.tokens;
  letter.kv = giver.runner->kv_place(letter.run).value();
  return letter;
}

Bytes kv_of(const Worker& worker) { return worker.runner->memory().kv; }

}  // namespace

TEST_CASE("a run that is handed over says the same, bit by bit, and leaves no page behind") {
  const StoreHouse store;
  for (const double temperature : {0.0, 1.0}) {
    CAPTURE(temperature);
    Worker giver(store, "worker/1"), taker(store, "worker/2"), alone(store, "worker/3");
    const HandOver letter = prefilled(giver, ask(temperature));
    CHECK(letter.kv.pages.size() == 3);  // 91 positions, 42 a page
    CHECK(kv_of(giver) > Bytes{0});
    REQUIRE(taker.runner->take_over(letter));
    giver.runner->let_go(RequestId{1});
    taker.run_dry();
    REQUIRE(alone.runner->add(ask(temperature)));
    alone.run_dry();

    Told both = taker.told;
    both.tokens.insert(both.tokens.begin(), giver.told.tokens.begin(), giver.told.tokens.end());
    both.logprobs.insert(both.logprobs.begin(), giver.told.logprobs.begin(), giver.told.logprobs.end());
    CHECK(both == alone.told);
    CHECK(alone.told.tokens.size() == 60);
    CHECK(kv_of(giver) == Bytes{0});
    CHECK(kv_of(taker) == Bytes{0});
  }
}

TEST_CASE("the worker that computed the prompt can go on itself, with the same bits") {
  const StoreHouse store;
  Worker giver(store, "worker/1"), alone(store, "worker/3");
  const HandOver letter = prefilled(giver, ask(1.0));
  giver.runner->let_go(RequestId{1});
  REQUIRE(giver.runner->add(letter.run));
  giver.run_dry();
  REQUIRE(alone.runner->add(ask(1.0)));
  alone.run_dry();
  CHECK(giver.told == alone.told);
  CHECK(kv_of(giver) == Bytes{0});
}

TEST_CASE("what is not what was promised is refused, and nothing of it stays") {
  const StoreHouse store;
  Worker giver(store, "worker/1"), taker(store, "worker/2");
  const HandOver letter = prefilled(giver, ask(0.0));
  const auto refused = [&](Worker& by, auto change) {
    HandOver changed = letter;
    change(changed);
    const auto taken = by.runner->take_over(changed);
    CHECK(kv_of(by) == Bytes{0});
    CHECK_FALSE(by.runner->has_work());
    return taken ? ErrorCode::none : taken.error().code;
  };
  CHECK(refused(taker, [](HandOver& l) { l.kv.digest[0] = l.kv.digest[0] == '0' ? '1' : '0'; }) == ErrorCode::corrupt);
  CHECK(refused(taker, [](HandOver& l) { l.kv.pages.back() = 1 << 20; }) == ErrorCode::corrupt);
  CHECK(refused(taker, [](HandOver& l) { l.kv.pages.pop_back(); }) == ErrorCode::corrupt);
  CHECK(refused(taker, [](HandOver& l) { l.kv.kv_name = "others"; }) == ErrorCode::invalid_input);
  CHECK(refused(taker, [](HandOver& l) { l.from = ActorName("worker/9"); }) == ErrorCode::not_found);
  Worker portable(store, "worker/4", "portable");
  if (letter.kv.isa != "portable") {
    CHECK(refused(portable, [](HandOver&) {}) == ErrorCode::invalid_input);
  }
  // The giver's pages hold another prompt by now.
  giver.runner->cancel(RequestId{1});
  Run other = ask(0.0);
  std::reverse(other.prompt.begin(), other.prompt.end());
  REQUIRE(giver.runner->add(other));
  (void)giver.runner->step();
  CHECK(refused(taker, [](HandOver&) {}) == ErrorCode::corrupt);
}
