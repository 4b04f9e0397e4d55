// The prefix cache in the engine: what is found, for whom, and that nobody says anything else because of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/unit/gpu/scripted_engine.hpp"

using namespace sangam;

namespace {

const std::string kWeights = "weights";
const ScriptedModel::Script kLong{.context = 2000};

Run of(const TenantId& tenant, Run run) {
  run.tenant = tenant;
  return run;
}

/// Another request with the prompt of `like`, and more behind it.
Run again(const Run& like, std::uint64_t number, std::int64_t more = 0) {
  Run run = like;
  run.request = RequestId{number};
  for (std::int64_t i = 0; i < more; ++i) run.prompt.push_back(TokenId((number + std::uint64_t(i)) % 50));
  return run;
}

ScriptedEngine::Told& run_one(ScriptedEngine& bench, const Run& run) {
  REQUIRE(bench.engine().add(run));
  bench.run_dry();
  return bench.told(std::uint64_t(run.request));
}

Pages kept(ScriptedEngine& bench) {
  return bench.engine().stats(kModel).kept;
}

/// Weights come and go; so many pages have to give way to them, if they are to be had.
void shrink(ScriptedEngine& bench, Pages pages) {
  (void)bench.pool().reserve_weights(std::min(bench.pool().pages().free() + pages, bench.pool().available()));
}

}  // namespace

TEST_CASE("a prompt that was there before is computed from behind its last whole page") {
  ScriptedEngine bench({});
  bench.load(kModel, kLong, kWeights);
  const Run first = request(1, 600, 3);  // 256 tokens a page
  CHECK(run_one(bench, first).cached == 0);
  CHECK(kept(bench) == Pages{2});
  const ScriptedEngine::Told& second = run_one(bench, again(first, 2));
  CHECK(second.cached == 512);
  CHECK(second.prefill_rows == 88);
  check_equal(second, alone(again(first, 2), kLong));
  const RosterCount count = bench.engine().stats(kModel).count;
  CHECK(count.prefix_queries == 1200);
  CHECK(count.prefix_hits == 512);
  CHECK(bench.pool().available() == Pages{64});
}

TEST_CASE("of a prompt that is there as a whole, at least one token is computed") {
  ScriptedEngine bench({});
  bench.load(kModel, kLong, kWeights);
  const Run first = request(1, 512, 5);
  (void)run_one(bench, first);
  const ScriptedEngine::Told& second = run_one(bench, again(first, 2));
  CHECK(second.cached == 256);
  CHECK(second.prefill_rows == 256);
  const ScriptedEngine::Told& third = run_one(bench, again(first, 3, 1));
  CHECK(third.cached == 512);
  CHECK(third.prefill_rows == 1);
  check_equal(third, alone(again(first, 3, 1), kLong));
}

TEST_CASE("a conversation finds what was said, not only what was asked") {
  ScriptedEngine bench({});
  bench.load(kModel, kLong, kWeights);
  Run turn = request(1, 100, 500);
  const std::vector<TokenId> said = run_one(bench, turn).tokens;
  turn.request = RequestId{2};
  turn.prompt.insert(turn.prompt.end(), said.begin(), said.end());
  CHECK(run_one(bench, turn).cached == 512);
  check_equal(bench.told(2), alone(turn, kLong));
}

TEST_CASE("a prompt is found by its own tenant only, unless all may share or nobody") {
  const auto second_cached = [](PrefixSharing sharing, const char* tenant) {
    ScriptedEngine bench({.prefix_sharing = sharing});
    bench.load(kModel, kLong, kWeights);
    const Run first = of(TenantId("a"), request(1, 600, 3));
    (void)run_one(bench, first);
    return run_one(bench, of(TenantId(tenant), again(first, 2))).cached;
  };
  CHECK(second_cached(PrefixSharing::tenant, "a") == 512);
  CHECK(second_cached(PrefixSharing::tenant, "b") == 0);
  CHECK(second_cached(PrefixSharing::tenant, "") == 0);
  CHECK(second_cached(PrefixSharing::everyone, "b") == 512);
  CHECK(second_cached(PrefixSharing::nobody, "a") == 0);
}

TEST_CASE("pages belong to the weights: they outlive an unload, and no other model sees them") {
  ScriptedEngine bench({});
  const ModelId other("other");
  const ScriptedModel::Script salted{.context = 2000, .salt = 99};
  bench.load(kModel, kLong, kWeights);
  bench.load(other, salted, "other weights");
  const Run first = request(1, 600, 3);
  (void)run_one(bench, first);
  Run of_other = again(first, 2);
  of_other.model = other;
  CHECK(run_one(bench, of_other).cached == 0);
  check_equal(bench.told(2), alone(of_other, salted));
  REQUIRE(bench.engine().unload(kModel));
  bench.load(kModel, kLong, kWeights);
  CHECK(run_one(bench, again(first, 3)).cached == 512);
  REQUIRE(bench.engine().unload(kModel));
  bench.load(kModel, kLong, "newer weights");
  CHECK(run_one(bench, again(first, 4)).cached == 0);
}

TEST_CASE("a step that fails keeps nothing of what it computed") {
  ScriptedEngine bench({.step_tokens = Tokens{300}});
  bench.load(kModel, {.context = 2000, .not_a_number_at = 600}, kWeights);
  CHECK(run_one(bench, request(1, 600, 3)).finish == FinishReason::failed);
  CHECK(kept(bench) == Pages{1});  // of the first 300; the step that went wrong had filled a second page
  CHECK(bench.pool().available() == Pages{64});
}

TEST_CASE("what is cancelled leaves behind the pages that it had filled") {
  ScriptedEngine bench({.step_tokens = Tokens{300}});
  bench.load(kModel, kLong, kWeights);
  const Run first = request(1, 1000, 3);
  REQUIRE(bench.engine().add(first));
  bench.step();
  bench.step();
  CHECK(bench.engine().cancel(RequestId{1}));
  CHECK(kept(bench) == Pages{2});
  CHECK(run_one(bench, again(first, 2)).cached == 512);
}

TEST_CASE("equal prompts that are computed at once end on the same pages") {
  ScriptedEngine bench({.step_tokens = Tokens{1200}});
  bench.load(kModel, kLong, kWeights);
  for (std::uint64_t number = 1; number <= 2; ++number)
    REQUIRE(bench.engine().add(again(request(1, 600, 9), number)));
  bench.step();
  CHECK(bench.engine().stats(kModel).count.pages == Pages{4});
  bench.run_dry();
  for (std::uint64_t number = 1; number <= 2; ++number)
    check_equal(bench.told(number), alone(again(request(1, 600, 9), number), kLong));
}

TEST_CASE("only pages that the cache has not must be had to let a request in") {
  const auto running = [](const std::string& kv_name) {
    ScriptedEngine bench({.step_tokens = Tokens{800}}, 5);
    bench.load(kModel, kLong, kv_name);
    const Run first = request(1, 700, 50);  // 3 pages, 2 of them whole
    REQUIRE(bench.engine().add(first));
    bench.step();
    REQUIRE(bench.engine().add(again(first, 2, 10)));
    bench.step();
    const std::int64_t both = bench.engine().stats(kModel).count.running;
    bench.run_dry();
    check_equal(bench.told(2), alone(again(first, 2, 10), kLong));
    return both;
  };
  CHECK(running(kWeights) == 2);
  CHECK(running("") == 1);
}

TEST_CASE("kept pages give way to those who run, least recently used first") {
  ScriptedEngine bench({}, 6);
  bench.load(kModel, kLong, kWeights);
  const Run first = request(1, 520, 3);
  const Run second = request(2, 520, 3);
  (void)run_one(bench, first);
  (void)run_one(bench, second);
  CHECK(kept(bench) == Pages{4});
  CHECK(run_one(bench, again(first, 3)).cached == 512);  // the second one's are now the older
  (void)run_one(bench, request(4, 700, 3));              // needs 3 and keeps 2, so one gives way
  CHECK(run_one(bench, again(first, 5)).cached == 512);
  CHECK(run_one(bench, again(second, 6)).cached < 512);
}

TEST_CASE("weights can have what is kept, and never what is in use") {
  ScriptedEngine bench({}, 8);
  bench.load(kModel, kLong, kWeights);
  const Run first = request(1, 520, 50);
  (void)run_one(bench, first);
  REQUIRE(bench.engine().add(again(first, 2)));
  bench.step();
  CHECK(kept(bench) == Pages{0});
  CHECK_FALSE(bench.pool().reserve_weights(Pages{6}));
  CHECK(bench.pool().reserve_weights(Pages{5}));
  CHECK(bench.engine().stats(kModel).count.pages == Pages{3});
  bench.run_dry();
  check_equal(bench.told(2), alone(again(first, 2), kLong));
  CHECK(kept(bench) == Pages{2});
  CHECK(bench.pool().reserve_weights(Pages{8}));
  CHECK(kept(bench) == Pages{0});
}

TEST_CASE("the pool takes what is kept when weights need it") {
  ScriptedEngine bench({}, 8);
  bench.load(kModel, kLong, kWeights);
  (void)run_one(bench, request(1, 520, 5));
  CHECK(kept(bench) == Pages{2});
  CHECK(bench.pool().reserve_weights(Pages{7}));
  CHECK(kept(bench) == Pages{1});
}

TEST_CASE("the ledger tells apart what each model's live requests need and what would give way") {
  ScriptedEngine bench({.step_tokens = Tokens{800}}, 12);
  const ModelId other("other");
  bench.load(kModel, kLong, kWeights);
  bench.load(other, {.context = 2000, .salt = 99}, "other weights");
  const auto of_model = [&](const ModelId& model) { return bench.pool().ledger().models[model]; };
  Run run = request(1, 700, 9);
  run.model = other;
  REQUIRE(bench.engine().add(run));
  bench.step();
  CHECK(of_model(other).kv == Pages{3});
  CHECK(of_model(other).cached == Pages{3});  // as many as the step took are ready for the next one
  bench.run_dry();
  CHECK(of_model(other).kv == Pages{0});
  CHECK(bench.pool().available() == Pages{12});

  REQUIRE(bench.engine().add(request(2, 1500, 40)));  // 6 pages, of 12 less what the other one keeps
  bench.step();
  bench.step();
  CHECK(of_model(kModel).kv == Pages{6});
  REQUIRE(bench.engine().add(request(3, 1300, 40)));  // 6 more: the model at rest gives all it has
  bench.run_dry();
  CHECK(of_model(other) == ModelPages{});
  CHECK(bench.engine().stats(kModel).count.preemptions == 0);
  check_equal(bench.told(2), alone(request(2, 1500, 40), kLong));
  check_equal(bench.told(3), alone(request(3, 1300, 40), kLong));
}

TEST_CASE("a preempted request goes on from the pages that are still there") {
  ScriptedEngine bench({.running_max = 1});
  bench.load(kModel, kLong, kWeights);
  Run slow = request(1, 600, 20);
  slow.service_class = ServiceClass::best_effort;
  REQUIRE(bench.engine().add(slow));
  bench.step();
  bench.step();
  bench.step();
  REQUIRE(bench.engine().add(request(2, 10, 2)));
  bench.step();
  CHECK(bench.engine().stats(kModel).count.preemptions == 1);
  bench.steps().clear();
  bench.run_dry();
  check_equal(bench.told(1), alone(slow, kLong));
  CHECK(bench.told(1).prefill_rows == 600);
  CHECK(bench.told(1).cached == 0);
  std::int64_t rows = 0;
  for (const ScriptedStep& step : bench.steps()) rows += step.rows;
  CHECK(rows < 20 + 600 - 512 + 5);
}

TEST_CASE("random shared prompts, tenants, cancels and a scarce pool never change what anyone says") {
  for (const bool weak_hash : {false, true}) {
    const std::uint64_t seed = 4711;
    CAPTURE(seed);
    CAPTURE(weak_hash);
    std::mt19937_64 random(seed);
    const ScriptedModel::Script script{.bytes_per_token = 512};  // 8 tokens a page
    ScriptedEngine bench({.running_max = 12, .step_tokens = Tokens{50}}, 40,
                         [&](std::span<const std::byte> bytes) {
                           return weak_hash ? Digest{{std::uint8_t(bytes.size() % 3)}} : digest_of(bytes);
                         });
    bench.load(kModel, script, kWeights);
    std::map<std::uint64_t, Run> runs;
    std::map<std::uint64_t, bool> cancelled;
    for (std::uint64_t number = 1; number <= 150; ++number) {
      Run run =
          again(request(1 + random() % 3, std::int64_t(1 + random() % 90), std::int64_t(1 + random() % 60)),
                number, std::int64_t(random() % 20));
      run.service_class = ServiceClass(random() % 3);
      run.tenant = TenantId(random() % 2 == 0 ? "a" : "b");
      runs[number] = run;
      REQUIRE(bench.engine().add(run));
      for (auto steps = random() % 12; steps > 0; --steps) bench.step();
      const std::uint64_t victim = 1 + random() % number;
      if (random() % 5 == 0 && bench.engine().cancel(RequestId{victim})) cancelled[victim] = true;
      if (random() % 9 == 0) shrink(bench, Pages(std::int64_t(random() % 9)));
    }
    bench.run_dry();
    CHECK(bench.pool().available() == Pages{40});
    CHECK(bench.engine().stats(kModel).count.preemptions > 10);
    CHECK(bench.engine().stats(kModel).count.prefix_hits > 1000);
    for (const auto& [number, run] : runs) {
      CAPTURE(number);
      if (!cancelled[number]) check_equal(bench.told(number), alone(run, script));
    }
  }
}
