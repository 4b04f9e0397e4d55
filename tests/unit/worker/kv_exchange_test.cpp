// Two whole workers and a holder: a run that is handed over says what it would have said, and pages are given back.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/worker/engine_runner.hpp"
#include "actors/worker/kv_progress.hpp"
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
  Worker(const StoreHouse& store, const std::string& name, const std::string& isa = "best", Tokens rows = Tokens{512},
         Bytes pool = Bytes{16 << 20}) {
    WorkerOptions options;
    options.name = ActorName(name);
    options.models = {{kDate, SANGAM_SOURCE_DIR "/models/A-date"}};
    options.pool_bytes = pool;
    options.page_bytes = Bytes{64 << 10};
    options.step_tokens = rows;
    options.threads = 1;
    options.isa = isa;
    options.holder = store.socket();
    runner = make_engine_runner(options).value();
    REQUIRE(runner->begin({kDate, Residency::active, {}}));
    while (!runner->advance(false).value()) {
    }
  }

  void step() {
    for (const TokensProduced& produced : runner->step().produced) {
      told.tokens.insert(told.tokens.end(), produced.tokens.begin(), produced.tokens.end());
      for (const PositionLogprobs& position : produced.logprobs) told.logprobs.push_back(position.chosen.logprob);
      told.finish = produced.finish;
    }
  }
  void run_dry() {
    while (runner->has_work()) step();
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

/// What is offered after the first token.
HandOver offer(Worker& giver, const Run& run) {
  REQUIRE(giver.told.tokens.size() == 1);
  HandOver letter{.run = run, .said = {}, .from = ActorName("worker/1"), .incarnation = Incarnation{1}};
  letter.run.generated = giver.told.tokens;
  letter.kv = giver.runner->kv_place(letter.run).value();
  return letter;
}

/// Until the first token; what it offers.
HandOver prefilled(Worker& giver, const Run& run) {
  REQUIRE(giver.runner->add_prefill(run));
  giver.run_dry();
  return offer(giver, run);
}

/// Lets the prompt in; what others are asked for.
ReserveKv begun(Worker& giver, const Run& run) {
  REQUIRE(giver.runner->add_prefill(run));
  const auto wishes = giver.runner->take_begun();
  REQUIRE(wishes.size() == 1);
  ReserveKv wish = wishes[0];
  wish.attempt = run.attempt;
  wish.model = run.model;
  wish.from = ActorName("worker/1");
  wish.incarnation = Incarnation{1};
  return wish;
}

Bytes kv_of(const Worker& worker) { return worker.runner->memory().kv; }

/// What both have said, and what one would have said alone.
void check_same(const StoreHouse& store, const Worker& giver, const Worker& taker, const Run& run) {
  Worker alone(store, "worker/3");
  REQUIRE(alone.runner->add(run));
  alone.run_dry();
  Told both = taker.told;
  both.tokens.insert(both.tokens.begin(), giver.told.tokens.begin(), giver.told.tokens.end());
  both.logprobs.insert(both.logprobs.begin(), giver.told.logprobs.begin(), giver.told.logprobs.end());
  CHECK(both == alone.told);
  CHECK(alone.told.tokens.size() == 60);
}

}  // namespace

TEST_CASE("a run that is handed over says the same, bit by bit, and leaves no page behind") {
  const StoreHouse store;
  for (const double temperature : {0.0, 1.0}) {
    CAPTURE(temperature);
    Worker giver(store, "worker/1"), taker(store, "worker/2");
    const HandOver letter = prefilled(giver, ask(temperature));
    CHECK(letter.kv.pages.size() == 3);  // 91 positions, 42 a page
    CHECK(kv_of(giver) > Bytes{0});
    REQUIRE(taker.runner->take_over(letter));
    giver.runner->let_go(RequestId{1});
    taker.run_dry();
    check_same(store, giver, taker, ask(temperature));
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

TEST_CASE("a prompt is copied chunk by chunk while it is computed, and goes on with the same bits") {
  const StoreHouse store;
  for (const std::int64_t rows : {1, 17, 42, 512}) {
    CAPTURE(rows);
    Worker giver(store, "worker/1", "best", Tokens{rows}), taker(store, "worker/2");
    const Run run = ask(1.0);
    const ReserveKv wish = begun(giver, run);
    CHECK(wish.tokens == Tokens{91});
    CHECK(wish.kv.pages.size() == 3);
    CHECK(giver.told.tokens.empty());
    REQUIRE(taker.runner->reserve_kv(wish));
    CHECK(taker.runner->memory().kv == Bytes{3 * 64 << 10});
    CHECK(taker.runner->pull_kv().advanced.empty());
    for (std::int64_t computed = rows; computed < 91 + rows; computed += rows) {
      giver.step();
      const KvPulled pulled = taker.runner->pull_kv();
      CHECK(pulled.advanced == std::vector{RequestId{1}});
      CHECK_FALSE(pulled.more);
      CHECK(taker.runner->pull_kv().advanced.empty());
    }
    const HandOver letter = offer(giver, run);
    CHECK(letter.kv.pages == wish.kv.pages);
    REQUIRE(taker.runner->take_over(letter));
    giver.runner->let_go(RequestId{1});
    taker.run_dry();
    check_same(store, giver, taker, run);
    CHECK(kv_of(giver) == Bytes{0});
    CHECK(kv_of(taker) == Bytes{0});
  }
}

TEST_CASE("what is read while it is written is what was written") {
  const StoreHouse store;
  for (int round = 0; round < 20; ++round) {
    Worker giver(store, "worker/1", "best", Tokens{9}), taker(store, "worker/2");
    const Run run = ask(0.0);
    REQUIRE(taker.runner->reserve_kv(begun(giver, run)));
    std::atomic<bool> done = false;
    std::jthread computing([&] {
      giver.run_dry();
      done = true;
    });
    while (!done) (void)taker.runner->pull_kv();
    computing.join();
    REQUIRE(taker.runner->take_over(offer(giver, run)));
    giver.runner->let_go(RequestId{1});
    taker.run_dry();
    if (round == 0) check_same(store, giver, taker, run);
  }
}

TEST_CASE("what has been copied early is not copied again, so what is wrong with it is found out") {
  const StoreHouse store;
  Worker giver(store, "worker/1", "best", Tokens{50}), taker(store, "worker/2");
  const Run run = ask(0.0);
  ReserveKv wish = begun(giver, run);
  REQUIRE(taker.runner->reserve_kv(wish));
  giver.step();
  (void)taker.runner->pull_kv();
  giver.run_dry();
  HandOver letter = offer(giver, run);
  SUBCASE("other pages are meant: all of it is copied anew") {
    std::swap(letter.kv.pages[0], letter.kv.pages[1]);
    CHECK(taker.runner->take_over(letter).error().code == ErrorCode::corrupt);
    CHECK(taker.runner->take_over(offer(giver, run)));
    taker.runner->cancel(RequestId{1});
  }
  SUBCASE("another attempt is meant: all of it is copied anew") {
    letter.run.attempt = 2;
    CHECK(taker.runner->take_over(letter));
    taker.runner->cancel(RequestId{1});
  }
  SUBCASE("another digest") {
    letter.kv.digest[0] = letter.kv.digest[0] == '0' ? '1' : '0';
    CHECK(taker.runner->take_over(letter).error().code == ErrorCode::corrupt);
  }
  SUBCASE("dropped, and handed over all the same") {
    taker.runner->drop_kv(RequestId{1});
    CHECK(kv_of(taker) == Bytes{0});
    CHECK(taker.runner->take_over(letter));
    taker.runner->cancel(RequestId{1});
  }
  CHECK(kv_of(taker) == Bytes{0});
}

TEST_CASE("cancelled or dead at any step, nobody keeps a page") {
  const StoreHouse store;
  // 0 let in, 1 reserved, 2 half computed, 3 half copied, 4 computed, 5 taken.
  for (int steps = 0; steps <= 5; ++steps) {
    CAPTURE(steps);
    Worker taker(store, "worker/2");
    {
      Worker giver(store, "worker/1", "best", Tokens{50});
      const Run run = ask(0.0);
      const ReserveKv wish = begun(giver, run);
      if (steps >= 1) REQUIRE(taker.runner->reserve_kv(wish));
      if (steps >= 2) giver.step();
      if (steps >= 3) CHECK(taker.runner->pull_kv().advanced.size() == 1);
      if (steps >= 4) giver.run_dry();
      if (steps >= 5) REQUIRE(taker.runner->take_over(offer(giver, run)));
      if (steps % 2 == 0) giver.runner->cancel(RequestId{1});
      if (steps % 2 == 0) CHECK(kv_of(giver) == Bytes{0});
    }
    (void)taker.runner->pull_kv();  // out of a pool whose worker is gone
    taker.runner->cancel(RequestId{1});
    CHECK(kv_of(taker) == Bytes{0});
    CHECK_FALSE(taker.runner->has_work());
  }
}

TEST_CASE("a wish that speaks of pages that are not there is refused, and what progress says is not believed blindly") {
  const StoreHouse store;
  Worker giver(store, "worker/1"), taker(store, "worker/2");
  const ReserveKv wish = begun(giver, ask(0.0));
  const auto refused = [&](auto change) {
    ReserveKv changed = wish;
    change(changed);
    const auto reserved = taker.runner->reserve_kv(changed);
    CHECK(kv_of(taker) == Bytes{0});
    return reserved ? ErrorCode::none : reserved.error().code;
  };
  CHECK(refused([](ReserveKv& w) { w.kv.pages.back() = 1 << 20; }) == ErrorCode::corrupt);
  CHECK(refused([](ReserveKv& w) { w.kv.pages.pop_back(); }) == ErrorCode::corrupt);
  CHECK(refused([](ReserveKv& w) { w.progress_page = 1 << 20; }) == ErrorCode::corrupt);
  CHECK(refused([](ReserveKv& w) { w.progress_offset = Bytes{(64 << 10) - 4}; }) == ErrorCode::corrupt);
  CHECK(refused([](ReserveKv& w) { w.progress_offset = Bytes{3}; }) == ErrorCode::corrupt);
  CHECK(refused([](ReserveKv& w) { w.kv.kv_name = "others"; }) == ErrorCode::invalid_input);
  CHECK(refused([](ReserveKv& w) { w.tokens = Tokens{0}; }) == ErrorCode::context_length);
  CHECK(refused([](ReserveKv& w) { w.from = ActorName("worker/9"); }) == ErrorCode::not_found);

  ReserveKv astray = wish;
  astray.progress_page = wish.kv.pages[0];  // keys, as after a restart of the giver
  REQUIRE(taker.runner->reserve_kv(astray));
  giver.run_dry();
  (void)taker.runner->pull_kv();
  taker.runner->drop_kv(RequestId{1});
  CHECK(kv_of(taker) == Bytes{0});
}

TEST_CASE("a progress word says what was stored, and the most that fits") {
  const auto pool = PagePool::create({Bytes{4 * 4096}, Bytes{4096}}).value();
  ProgressBoard board(*pool);
  const auto first = board.take(kDate).value();
  const auto second = board.take(kDate).value();
  CHECK(first.page == second.page);
  CHECK(load_progress(board.at(first)) == KvProgress{});
  store_progress(board.at(first), {16'000'000, 512, 61});
  CHECK(load_progress(board.at(first)) == KvProgress{16'000'000, 512, 61});
  CHECK(load_progress(board.at(second)) == KvProgress{});
  store_progress(board.at(second), {1 << 25, 1 << 25, 1 << 17});
  CHECK(load_progress(board.at(second)) == KvProgress{(1 << 24) - 1, (1 << 24) - 1, (1 << 16) - 1});
  std::vector<ProgressBoard::Place> more;
  while (const auto place = board.take(kDate)) more.push_back(*place);
  CHECK(more.size() == 62);  // 64 lines in a page
  CHECK(pool->ledger().models.at(kDate).kv == Pages{1});
  for (const auto& place : more) board.give_back(kDate, place);
  board.give_back(kDate, first);
  board.give_back(kDate, second);
  CHECK(pool->ledger().free == Pages{4});
}
