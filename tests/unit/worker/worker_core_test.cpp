// The worker's rules, with a runner that is scripted letter by letter.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/unit/worker/worker_kit.hpp"

using namespace sangam;
using namespace sangam::worker_kit;

TEST_CASE("models load one after the other, and each is announced to all who listen, broken ones too") {
  Desk desk(false);
  desk.runner.broken.emplace(kModel, make_error(ErrorCode::corrupt, "weights: shard 2 is cut"));
  desk.move();
  REQUIRE(desk.said<InstanceGone>(kGateway).size() == 1);
  CHECK(desk.said<InstanceGone>(kScheduler).at(0).why == "weights: shard 2 is cut");
  CHECK(desk.said<InstanceGone>(kScheduler).at(0).incarnation == Incarnation{7});
  CHECK(desk.said<InstanceReady>(kGateway).empty());
  desk.out.clear();
  CHECK(desk.worker.busy());
  desk.move();
  const auto ready = desk.said<InstanceReady>(kScheduler);
  REQUIRE(ready.size() == 1);
  CHECK(ready[0].worker == ActorName("worker/1"));
  CHECK(ready[0].model == kOther);
  CHECK(ready[0].running_max == 2);
  CHECK(ready[0].kv_capacity == Tokens{1000});
  CHECK(ready[0].prefill_tokens_per_second == 250.0);
  CHECK(ready[0].weights_digest == "abcd");
  CHECK(desk.said<InstanceReady>(kGateway).size() == 1);
  CHECK_FALSE(desk.worker.busy());
}

TEST_CASE("the last load tells of all models again, with the room that is left") {
  Desk desk(false);
  desk.move();
  CHECK(desk.said<InstanceReady>(kScheduler).at(0).kv_capacity == Tokens{1000});
  desk.runner.kv_capacity = Tokens{800};
  desk.out.clear();
  desk.move();
  const auto ready = desk.said<InstanceReady>(kScheduler);
  REQUIRE(ready.size() == 2);
  CHECK(ready[0].model == kOther);
  CHECK(ready[1].model == kModel);
  CHECK(ready[1].kv_capacity == Tokens{800});
}

TEST_CASE("what is odd about the memory that it came up with is logged") {
  ScriptedRunner::State runner;
  runner.notes = {"table A-arith: its bytes have changed"};
  Outbox out;
  WorkerCore(options(), std::make_unique<ScriptedRunner>(runner)).start(at(0), out);
  REQUIRE(out.logs.size() == 1);
  CHECK(out.logs[0].level == LogLevel::warning);
  CHECK(out.logs[0].fields.front().second == "table A-arith: its bytes have changed");
}

TEST_CASE("who is found anew hears about every model") {
  Desk desk;
  desk.hear(ActorFound{ActorName("gateway/2"), Incarnation{1}});
  CHECK(desk.said<InstanceReady>(ActorName("gateway/2")).size() == 2);
  desk.hear(ActorFound{kScheduler, Incarnation{2}});
  CHECK(desk.said<InstanceReady>(kScheduler).size() == 2);
  desk.hear(ActorFound{kQueue, Incarnation{1}});
  CHECK(desk.out.letters.empty());
}

TEST_CASE("a run's tokens go to its gateway, its prefill to the scheduler, its end to queue and scheduler") {
  Desk desk;
  desk.hear(run_of(1));
  REQUIRE(desk.out.letters.size() == 1);
  CHECK(desk.said<InstanceState>(kLifecycle).at(0).live == 1);
  desk.step({{tokens(1, 0)}, {{RequestId{1}, Tokens{3}, true}}, Micros(400)}, at(1000));
  REQUIRE(desk.said<TokensProduced>(kGateway).size() == 1);
  const auto prefill = desk.said<PrefillFinished>(kScheduler);
  REQUIRE(prefill.size() == 1);
  CHECK(prefill[0].estimated == Micros(500));
  CHECK(prefill[0].measured == Micros(400));
  CHECK(prefill[0].computed == Tokens{3});
  CHECK(desk.said<RunEnded>(kQueue).empty());

  desk.step({{tokens(1, 1, FinishReason::length)}, {}, Micros(100)}, at(1500));
  for (const ActorName& hearer : {kQueue, kScheduler}) {
    const auto ended = desk.said<RunEnded>(hearer);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].request == RequestId{1});
    CHECK(ended[0].finish == FinishReason::length);
    CHECK(ended[0].produced == Tokens{2});
  }
  CHECK(desk.said<PrefillFinished>(kScheduler).empty());
}

TEST_CASE("the times of prefills add up to the time that they took together") {
  Desk desk;
  desk.hear(run_of(1));
  desk.hear(run_of(2));
  desk.step({{}, {{RequestId{1}, Tokens{30}, false}, {RequestId{2}, Tokens{10}, false}}, Micros(400)},
            at(1000));
  // Another model's step from 1400 to 1700 is part of the wait; then one of both ends, then the other.
  desk.step({{}, {}, Micros(300)}, at(1400));
  desk.step({{}, {{RequestId{1}, Tokens{10}, true}, {RequestId{2}, Tokens{40}, false}}, Micros(200)},
            at(1700));
  CHECK(desk.said<PrefillFinished>(kScheduler).at(0).measured ==
        Micros(300 + 100));  // 3/4 of 400, 1/5 of 500
  CHECK(desk.said<PrefillFinished>(kScheduler).at(0).computed == Tokens{40});
  desk.step({{}, {{RequestId{2}, Tokens{50}, true}}, Micros(150)}, at(2000));
  // 1/4 of 400, 4/5 of 500, and from 1900 to 2150
  CHECK(desk.said<PrefillFinished>(kScheduler).at(0).measured == Micros(100 + 400 + 250));
  // Nothing was prefilled from 2150 to 9000: that is nobody's time.
  desk.hear(Cancel{RequestId{1}});
  desk.hear(run_of(3));
  desk.step({{}, {{RequestId{3}, Tokens{5}, true}}, Micros(70)}, at(9000));
  CHECK(desk.said<PrefillFinished>(kScheduler).at(0).measured == Micros(70));
}

TEST_CASE("a newer attempt replaces the older one, which ends once; older and equal ones are ignored") {
  Desk desk;
  desk.hear(run_of(1, 2));
  desk.hear(run_of(1, 2));
  desk.hear(run_of(1, 1));
  CHECK(desk.out.letters.empty());
  CHECK(desk.runner.live.size() == 1);

  desk.hear(run_of(1, 3));
  CHECK(desk.runner.cancelled == std::vector{RequestId{1}});
  REQUIRE(desk.said<RunEnded>(kQueue).size() == 1);
  CHECK(desk.said<RunEnded>(kQueue)[0].attempt == 2);
  CHECK(desk.said<RunEnded>(kQueue)[0].finish == FinishReason::cancelled);
  CHECK(desk.said<RunEnded>(kScheduler).size() == 1);
  CHECK(desk.said<TokensProduced>(kGateway).empty());

  desk.step({{tokens(1, 0, FinishReason::stop)}, {}, Micros(1)}, at(1));
  CHECK(desk.said<RunEnded>(kQueue).at(0).attempt == 3);
  desk.hear(run_of(1, 3));
  CHECK(desk.out.letters.empty());
  desk.hear(run_of(1, 4));
  CHECK(desk.runner.live.size() == 1);
}

TEST_CASE("a cancel frees at once and ends once; what is not known is no error") {
  Desk desk;
  Run run = run_of(1);
  run.generated = {9, 9};
  desk.hear(run);
  desk.step({{tokens(1, 2)}, {}, Micros(1)}, at(1));
  desk.hear(Cancel{RequestId{1}});
  CHECK(desk.runner.cancelled == std::vector{RequestId{1}});
  const auto last = desk.said<TokensProduced>(kGateway);
  REQUIRE(last.size() == 1);
  CHECK(last[0].first == 3);
  CHECK(last[0].tokens.empty());
  CHECK(last[0].finish == FinishReason::cancelled);
  CHECK(desk.said<RunEnded>(kQueue).at(0).finish == FinishReason::cancelled);
  CHECK(desk.said<RunEnded>(kQueue).at(0).produced == Tokens{1});
  CHECK_FALSE(desk.worker.busy());
  desk.hear(Cancel{RequestId{1}});
  CHECK(desk.out.letters.empty());
}

TEST_CASE("a lost gateway takes its requests along, a lost queue those of its model") {
  Desk desk;
  Run elsewhere = run_of(2);
  elsewhere.tokens_to = ActorName("gateway/2");
  desk.hear(run_of(1));
  desk.hear(elsewhere);
  desk.hear(run_of(3, 1, kOther));
  desk.hear(ActorLost{ActorName("gateway/2"), Incarnation{1}, "closed"});
  CHECK(desk.runner.live == std::vector{RequestId{1}, RequestId{3}});
  CHECK(desk.said<RunEnded>(kQueue).at(0).request == RequestId{2});
  desk.hear(ActorLost{kQueue, Incarnation{1}, "killed"});
  CHECK(desk.runner.live == std::vector{RequestId{3}});
  CHECK(desk.said<RunEnded>(kScheduler).at(0).request == RequestId{1});
  // The gateway submits it anew; an end of its stream would contradict that.
  CHECK(desk.said<TokensProduced>(kGateway).empty());
  desk.hear(ActorLost{kScheduler, Incarnation{1}, "killed"});
  CHECK(desk.runner.live == std::vector{RequestId{3}});
}

TEST_CASE("what cannot be run is refused with the reason, and ends once") {
  Desk desk;
  const auto check_refused = [&](const Run& run, ErrorCode code) {
    desk.hear(run);
    const auto told = desk.said<TokensProduced>(kGateway);
    REQUIRE(told.size() == 1);
    CHECK(told[0].finish == FinishReason::failed);
    CHECK(told[0].code == code);
    CHECK_FALSE(told[0].why.empty());
    CHECK(told[0].first == run.generated.size());
    CHECK(desk.said<RunEnded>(queue_of(run.model)).at(0).finish == FinishReason::failed);
    CHECK(desk.said<RunEnded>(kScheduler).size() == 1);
  };
  SUBCASE("a model of others") {
    check_refused(run_of(1, 1, ModelId("B-count")), ErrorCode::not_found);
  }
  SUBCASE("what the engine refuses") {
    desk.runner.next_add = make_error(ErrorCode::context_length, "prompt tokens=99");
    Run run = run_of(1);
    run.generated = {4, 5};
    check_refused(run, ErrorCode::context_length);
    desk.hear(run);
    CHECK(desk.out.letters.empty());
  }
  SUBCASE("more than the bound") {
    for (std::uint64_t request = 1; request <= 3; ++request) desk.hear(run_of(request));
    check_refused(run_of(4), ErrorCode::unavailable);
    CHECK(desk.runner.live.size() == 3);
  }
}

TEST_CASE("a model that is still loading or could not be loaded is unavailable, not unknown") {
  Desk desk(false);
  desk.runner.broken.emplace(kModel, make_error(ErrorCode::corrupt, "cut"));
  desk.hear(run_of(1));
  CHECK(desk.said<TokensProduced>(kGateway).at(0).code == ErrorCode::unavailable);
  desk.finish_moves();
  desk.hear(run_of(2));
  CHECK(desk.said<TokensProduced>(kGateway).at(0).code == ErrorCode::unavailable);
  CHECK(desk.said<TokensProduced>(kGateway).at(0).why.find("cut") != std::string::npos);
}

TEST_CASE("a run that fails on the way says why and ends") {
  Desk desk;
  desk.hear(run_of(1));
  TokensProduced failed = tokens(1, 0, FinishReason::failed);
  failed.tokens.clear();
  failed.code = ErrorCode::internal;
  failed.why = "logit nan";
  desk.step({{failed}, {{RequestId{1}, Tokens{3}, true}}, Micros(5)}, at(0));
  CHECK(desk.said<TokensProduced>(kGateway).at(0).why == "logit nan");
  CHECK(desk.said<PrefillFinished>(kScheduler).size() == 1);
  CHECK(desk.said<RunEnded>(kQueue).at(0).finish == FinishReason::failed);
  REQUIRE(desk.out.logs.size() == 1);
  CHECK(desk.out.logs[0].level == LogLevel::error);
}

TEST_CASE("gateways hear a status twice a second, and at once when a count falls to zero") {
  Desk desk;
  Outbox start;
  WorkerCore(options(), std::make_unique<ScriptedRunner>(desk.runner)).start(at(0), start);
  REQUIRE(start.alarms.size() == 1);
  CHECK(start.alarms[0].at == at(500'000));

  desk.runner.statuses[kModel].running = 1;
  desk.runner.statuses[kModel].kv_used = Pages{3};
  desk.worker.wake(start.alarms[0].timer, at(500'000), desk.out);
  CHECK(desk.said<InstanceStatus>(kGateway).size() == 2);
  CHECK(desk.said<InstanceStatus>(kGateway)[0].worker == ActorName("worker/1"));
  CHECK(desk.out.alarms.at(0).at == at(1'000'000));

  desk.hear(run_of(1));
  desk.step({{tokens(1, 0)}, {}, Micros(1)}, at(600'000));
  CHECK(desk.said<InstanceStatus>(kGateway).empty());
  desk.runner.statuses[kModel] = InstanceStatus{};
  desk.step({{tokens(1, 1, FinishReason::stop)}, {}, Micros(1)}, at(700'000));
  REQUIRE(desk.said<InstanceStatus>(kGateway).size() == 1);
  CHECK(desk.said<InstanceStatus>(kGateway)[0].running == 0);
  CHECK(desk.said<InstanceStatus>(kScheduler).empty());
}

TEST_CASE("whatever comes in whatever order, each run that was news ends exactly once") {
  const std::uint64_t seed = 4242;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Desk desk;
  std::map<std::pair<std::uint64_t, Attempt>, int> ends;
  std::map<std::uint64_t, Attempt> newest;
  std::map<std::pair<std::uint64_t, Attempt>, int> news;
  const auto count_ends = [&] {
    for (const RunEnded& ended : desk.said<RunEnded>(kScheduler))
      ++ends[{std::uint64_t(ended.request), ended.attempt}];
  };
  for (int event = 0; event < 20'000; ++event) {
    const std::uint64_t request = random() % 12;
    switch (random() % 5) {
      case 0: {
        const Attempt attempt = std::max<Attempt>(newest[request] + 1, 3) - Attempt(random() % 3);
        if (attempt > newest[request]) ++news[{request, newest[request] = attempt}];
        desk.hear(run_of(request, attempt));
        break;
      }
      case 1:
        desk.hear(Cancel{RequestId{request}});
        break;
      case 2:
        if (random() % 20 == 0) {
          desk.hear(ActorLost{kQueue, Incarnation{1}, ""});
          break;
        }
        [[fallthrough]];
      default: {
        if (desk.runner.live.empty()) continue;
        const RequestId any = desk.runner.live[random() % desk.runner.live.size()];
        const bool last = random() % 3 == 0;
        desk.step(
            {{tokens(std::uint64_t(any), 0, last ? FinishReason::stop : FinishReason::none)}, {}, Micros(1)},
            at(event));
      }
    }
    count_ends();
  }
  desk.hear(ActorLost{kGateway, Incarnation{1}, ""});
  count_ends();
  CHECK(ends == news);
  CHECK(news.size() > 1000);
  CHECK_FALSE(desk.worker.busy());
}

TEST_CASE("a run that comes before its gateway is found waits for it, and ends once whatever becomes of it") {
  const ActorName late("gateway/2");
  Desk desk;
  Run run = run_of(1);
  run.tokens_to = late;
  desk.hear(run);
  CHECK(desk.runner.live.empty());
  desk.hear(run);  // An echo.
  desk.hear(ActorFound{late, Incarnation{1}});
  CHECK(desk.runner.live == std::vector<RequestId>{RequestId{1}});
  desk.step({{tokens(1, 0, FinishReason::stop)}, {}, Micros(10)}, at(10));
  CHECK(desk.said<TokensProduced>(late).size() == 1);
  CHECK(desk.said<RunEnded>(kQueue).size() == 1);

  const ActorName never("gateway/3");
  for (const Message& end : std::vector<Message>{Cancel{RequestId{2}}, ActorLost{kQueue, Incarnation{1}, "crashed"}}) {
    Desk other;
    Run waiting = run_of(2);
    waiting.tokens_to = never;
    other.hear(waiting);
    CHECK(other.said<RunEnded>(kQueue).empty());
    other.out.clear();
    CHECK(deliver(other.worker, end, at(0), other.out));
    REQUIRE(other.said<RunEnded>(kScheduler).size() == 1);
    CHECK(other.said<RunEnded>(kScheduler).front().finish == FinishReason::cancelled);
    other.hear(ActorFound{never, Incarnation{1}});
    CHECK(other.runner.live.empty());
  }
}
