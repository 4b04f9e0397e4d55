// The engine's promises, with models that notice every wrong page.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "tests/unit/gpu/scripted_engine.hpp"

using namespace sangam;

TEST_CASE("a request says the same alone, among 32, and whatever the rows of a step") {
  std::map<std::uint64_t, ScriptedEngine::Told> expected;
  for (std::uint64_t number = 1; number <= 32; ++number)
    expected[number] = alone(request(number, 1 + std::int64_t(number * 5 % 60), 20));
  for (const std::int64_t rows : {1, 3, 7, 33, 64, 512}) {
    CAPTURE(rows);
    ScriptedEngine bench({.running_max = 32, .step_tokens = Tokens{rows}});
    bench.load(kModel, {});
    for (std::uint64_t number = 1; number <= 32; ++number)
      REQUIRE(bench.engine().add(request(number, 1 + std::int64_t(number * 5 % 60), 20)));
    bench.run_dry();
    for (std::uint64_t number = 1; number <= 32; ++number) {
      CAPTURE(number);
      check_equal(bench.told(number), expected[number]);
      CHECK(bench.told(number).tokens.size() == 20);
      CHECK(bench.told(number).prefills_done == 1);
      CHECK(bench.told(number).prefill_rows == 1 + std::int64_t(number * 5 % 60));
    }
    for (const ScriptedStep& step : bench.steps()) CHECK(step.rows <= rows);
    CHECK(bench.pool().available() == Pages{64});
  }
}

TEST_CASE("a request that goes on after any of its tokens says what it would have said") {
  for (const std::uint64_t number : {4u, 5u, 7u, 10u}) {
    const ScriptedEngine::Told whole = alone(request(number, 9, 15));
    for (std::size_t cut = 0; cut <= 15; ++cut) {
      CAPTURE(cut);
      Run rest = request(number, 9, 15);
      rest.generated.assign(whole.tokens.begin(), whole.tokens.begin() + std::ptrdiff_t(cut));
      const ScriptedEngine::Told told = alone(rest);
      CHECK(told.first == cut);
      CHECK(told.tokens ==
            std::vector<TokenId>(whole.tokens.begin() + std::ptrdiff_t(cut), whole.tokens.end()));
      CHECK(told.finish == FinishReason::length);
    }
  }
}

TEST_CASE("when pages run out the youngest waits, and says the same later") {
  // Three pages: three prompts of 250 tokens fit, but their second pages do not.
  const ScriptedModel::Script script{.context = 1000};
  ScriptedEngine bench({.running_max = 8}, 3);
  bench.load(kModel, script);
  for (const std::uint64_t number : {1u, 2u, 3u}) REQUIRE(bench.engine().add(request(number, 250, 30)));
  bench.step();
  CHECK(bench.engine().stats(kModel).count.running == 2);  // the third would leave no page to grow into
  bench.run_dry();
  CHECK(bench.engine().stats(kModel).count.preemptions >= 1);
  for (const std::uint64_t number : {1u, 2u, 3u}) {
    CAPTURE(number);
    check_equal(bench.told(number), alone(request(number, 250, 30), script));
    CHECK(bench.told(number).prefills_done == 1);
    CHECK(bench.told(number).prefill_rows == 250);
  }
  CHECK(bench.pool().available() == Pages{3});
}

TEST_CASE("a better class takes pages and places from the last of a worse one") {
  ScriptedEngine bench({.running_max = 2}, 16);
  bench.load(kModel, {});
  Run best_effort = request(1, 10, 50);
  best_effort.service_class = ServiceClass::best_effort;
  Run normal = request(2, 10, 50);
  Run deadline = request(3, 10, 50);
  deadline.service_class = ServiceClass::deadline;
  for (const Run& run : {best_effort, normal}) REQUIRE(bench.engine().add(run));
  bench.step();
  bench.step();
  REQUIRE(bench.engine().add(deadline));
  for (int i = 0; i < 5; ++i) bench.step();
  CHECK(bench.told(1).tokens.size() == 2);
  CHECK(bench.told(2).tokens.size() == 7);
  CHECK(bench.told(3).tokens.size() == 5);
  CHECK(bench.engine().stats(kModel).count.preemptions == 1);
  bench.run_dry();
  for (const Run& run : {best_effort, normal, deadline})
    CHECK(bench.told(std::uint64_t(run.request)).tokens == alone(run).tokens);
}

TEST_CASE("within a class the earlier goes first, and nobody overtakes one that waits for pages") {
  ScriptedEngine bench({.running_max = 8}, 4);
  bench.load(kModel, {.context = 1000});
  REQUIRE(bench.engine().add(request(1, 500, 5)));  // 2 pages
  REQUIRE(bench.engine().add(request(2, 600, 5)));  // 3 pages: must wait
  REQUIRE(bench.engine().add(request(3, 10, 5)));   // 1 page, would fit
  bench.step();
  CHECK(bench.engine().stats(kModel).count.running == 1);
  CHECK(bench.engine().stats(kModel).count.waiting == 2);
  CHECK(bench.engine().stats(kModel).count.pages == Pages{2});
  bench.run_dry();
  CHECK(bench.told(3).tokens.size() == 5);
}

TEST_CASE("running streams get their token in each step, beside the chunks of a long prompt") {
  ScriptedEngine bench({.running_max = 8, .step_tokens = Tokens{16}});
  bench.load(kModel, {});
  REQUIRE(bench.engine().add(request(1, 4, 100)));
  REQUIRE(bench.engine().add(request(2, 4, 100)));
  bench.step();
  REQUIRE(bench.engine().add(request(3, 100, 10)));
  bench.steps().clear();
  for (int i = 0; i < 8; ++i) bench.step();
  CHECK(bench.steps().front().rows_of == std::vector<std::int64_t>{1, 1, 14});
  CHECK(bench.steps().back().rows_of == std::vector<std::int64_t>{1, 1, 2});  // 7 * 14 + 2 = 100
  CHECK(bench.told(1).tokens.size() == 9);
  CHECK(bench.told(3).tokens.size() == 1);
}

TEST_CASE("models take turns, one step each, and do not mix") {
  ScriptedEngine bench({.running_max = 8});
  const ModelId other("other");
  const ScriptedModel::Script salted{.salt = 99};
  bench.load(kModel, {});
  bench.load(other, salted);
  Run of_other = request(2, 10, 6);
  of_other.model = other;
  REQUIRE(bench.engine().add(request(1, 10, 6)));
  REQUIRE(bench.engine().add(of_other));
  for (int i = 0; i < 4; ++i) bench.step();
  CHECK(bench.told(1).tokens.size() == 2);
  CHECK(bench.told(2).tokens.size() == 2);
  bench.run_dry();
  CHECK(bench.told(1).tokens == alone(request(1, 10, 6)).tokens);
  CHECK(bench.told(2).tokens == alone(of_other, salted).tokens);
  CHECK(bench.engine().stats(kModel).steps == 6);
}

TEST_CASE("a cancelled request is silent at once and its pages are free") {
  ScriptedEngine bench({.running_max = 1});
  bench.load(kModel, {});
  REQUIRE(bench.engine().add(request(1, 10, 100)));
  REQUIRE(bench.engine().add(request(2, 10, 3)));
  bench.step();
  CHECK(bench.pool().available() == Pages{63});
  CHECK(bench.engine().cancel(RequestId{1}));
  CHECK_FALSE(bench.engine().cancel(RequestId{1}));
  CHECK(bench.pool().available() == Pages{64});
  bench.run_dry();
  CHECK(bench.told(1).tokens.size() == 1);
  CHECK(bench.told(2).tokens.size() == 3);
}

TEST_CASE("a stop token ends the stream and is not said") {
  Run run = request(3, 10, 40);
  const ScriptedEngine::Told whole = alone(run);
  const TokenId stop = whole.tokens[6];
  const auto first_at = std::find(whole.tokens.begin(), whole.tokens.end(), stop) - whole.tokens.begin();
  run.sampling.stop_tokens = {stop};
  const ScriptedEngine::Told told = alone(run);
  CHECK(told.finish == FinishReason::stop);
  CHECK(told.tokens == std::vector<TokenId>(whole.tokens.begin(), whole.tokens.begin() + first_at));
  run.sampling.ignore_eos = true;
  CHECK(alone(run).tokens == whole.tokens);
}

TEST_CASE("output ends with the model's context, and a prompt that fills it is refused with the numbers") {
  const ScriptedModel::Script script{.context = 20};
  CHECK(alone(request(1, 15, 100), script).tokens.size() == 5);
  CHECK(alone(request(1, 19, 100), script).tokens.size() == 1);
  CHECK(alone(request(1, 19, 100), script).finish == FinishReason::length);
  ScriptedEngine bench({});
  bench.load(kModel, script);
  const auto refused = bench.engine().add(request(1, 20, 1));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::context_length);
  CHECK(refused.error().context.find("prompt tokens=20") != std::string::npos);
  CHECK(refused.error().context.find("context=20") != std::string::npos);
  CHECK_FALSE(bench.engine().has_work());
}

TEST_CASE("output ends where the pages end, when the pool is smaller than the context") {
  ScriptedEngine bench({.running_max = 4}, 2);
  bench.load(kModel, {.context = 100'000});
  CHECK(bench.engine().kv_capacity(kModel) == Tokens{512});
  REQUIRE(bench.engine().add(request(1, 500, 1000)));
  REQUIRE(bench.engine().add(request(2, 500, 1000)));
  CHECK(bench.engine().add(request(3, 512, 1)).error().code == ErrorCode::context_length);
  bench.run_dry();
  CHECK(bench.told(1).tokens.size() == 12);
  CHECK(bench.told(2).tokens.size() == 12);
}

TEST_CASE("numbers that the model gets wrong end that request alone") {
  ScriptedEngine bench({});
  bench.load(kModel, {.not_a_number_at = 12});
  REQUIRE(bench.engine().add(request(1, 10, 20)));
  REQUIRE(bench.engine().add(request(2, 13, 20)));
  bench.run_dry();
  CHECK(bench.told(1).finish == FinishReason::failed);
  CHECK(bench.told(1).code == ErrorCode::internal);
  CHECK(bench.told(1).why.find("nan") != std::string::npos);
  CHECK(bench.told(1).tokens.size() == 2);
  CHECK(bench.told(2).tokens.size() == 20);
  CHECK(bench.pool().available() == Pages{64});
}

TEST_CASE("what can never run is refused when it comes") {
  ScriptedEngine bench({});
  bench.load(kModel, {});
  const auto code_of = [&](auto change) {
    Run run = request(1, 5, 5);
    change(run);
    const auto added = bench.engine().add(run);
    return added ? ErrorCode::none : added.error().code;
  };
  CHECK(code_of([](Run& run) { run.model = ModelId("nobody"); }) == ErrorCode::not_found);
  CHECK(code_of([](Run& run) { run.prompt.clear(); }) == ErrorCode::invalid_input);
  CHECK(code_of([](Run& run) { run.prompt.back() = 50; }) == ErrorCode::invalid_input);
  CHECK(code_of([](Run& run) { run.generated = {1, 50}; }) == ErrorCode::invalid_input);
  CHECK(code_of([](Run& run) { run.sampling.top_p = 0; }) == ErrorCode::invalid_input);
  CHECK_FALSE(bench.engine().has_work());
}

TEST_CASE("a model is unloaded only when none of its requests is live") {
  ScriptedEngine bench({});
  bench.load(kModel, {});
  CHECK_FALSE(bench.engine().load(kModel, {{}, std::make_unique<ScriptedModel>(ScriptedModel::Script{})}));
  REQUIRE(bench.engine().add(request(1, 5, 5)));
  CHECK(bench.engine().unload(kModel).error().code == ErrorCode::unavailable);
  bench.run_dry();
  CHECK(bench.engine().unload(kModel));
  CHECK(bench.engine().unload(kModel).error().code == ErrorCode::not_found);
  CHECK(bench.engine().add(request(2, 5, 5)).error().code == ErrorCode::not_found);
}

TEST_CASE("a sequence whose pages went to weights meanwhile fails with the numbers, alone") {
  ScriptedEngine bench({.running_max = 4}, 4);
  bench.load(kModel, {.context = 2000});
  REQUIRE(bench.engine().add(request(1, 700, 5)));  // 3 pages
  REQUIRE(bench.engine().add(request(2, 10, 5)));
  const auto weights = bench.pool().reserve_weights(Pages{2});
  REQUIRE(weights);
  bench.run_dry();
  CHECK(bench.told(1).code == ErrorCode::exhausted);
  CHECK(bench.told(1).why.find("needed=3") != std::string::npos);
  CHECK(bench.told(2).tokens.size() == 5);
}

TEST_CASE("random arrivals, cancels and classes over two models never change what anyone says") {
  const std::uint64_t seed = 77;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const ModelId other("other");
  const ScriptedModel::Script scripts[] = {{.bytes_per_token = 512}, {.bytes_per_token = 256, .salt = 5}};
  ScriptedEngine bench({.running_max = 12, .step_tokens = Tokens{50}}, 40);
  bench.load(kModel, scripts[0]);
  bench.load(other, scripts[1]);
  std::map<std::uint64_t, Run> runs;
  std::map<std::uint64_t, bool> cancelled;
  for (std::uint64_t number = 1; number <= 120; ++number) {
    Run run = request(number, std::int64_t(1 + random() % 90), std::int64_t(1 + random() % 90));
    run.service_class = ServiceClass(random() % 3);
    if (random() % 2 == 0) run.model = other;
    runs[number] = run;
    REQUIRE(bench.engine().add(run));
    for (auto steps = random() % 12; steps > 0; --steps) bench.step();
    const std::uint64_t victim = 1 + random() % number;
    if (random() % 5 == 0 && bench.engine().cancel(RequestId{victim})) cancelled[victim] = true;
  }
  bench.run_dry();
  CHECK(bench.pool().available() == Pages{40});
  CHECK(bench.engine().stats(kModel).count.preemptions + bench.engine().stats(other).count.preemptions > 20);
  for (const auto& [number, run] : runs) {
    CAPTURE(number);
    const ScriptedEngine::Told expected = alone(run, scripts[run.model == other ? 1 : 0]);
    const ScriptedEngine::Told& told = bench.told(number);
    if (cancelled[number]) {
      REQUIRE(told.tokens.size() <= expected.tokens.size());
      CHECK(std::equal(told.tokens.begin(), told.tokens.end(), expected.tokens.begin()));
    } else {
      check_equal(told, expected);
    }
  }
}
