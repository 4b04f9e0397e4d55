// Runs that change the worker: who says what of them, whatever happens at which moment.
#include <doctest/doctest.h>

#include "tests/unit/worker/worker_kit.hpp"

using namespace sangam;
using namespace sangam::worker_kit;

namespace {

const ActorName kGiver("worker/1"), kTaker("worker/2"), kOtherTaker("worker/3");

WorkerOptions as(WorkerRole role) {
  WorkerOptions changed = options();
  changed.role = role;
  changed.holder = "/run/holder.sock";
  return changed;
}

Run for_others(std::uint64_t request, Attempt attempt = 1) {
  Run run = run_of(request, attempt);
  run.decode_on = {kTaker, kOtherTaker};
  return run;
}

/// A worker that prefills, with two that decode around it.
struct Giver : Desk {
  Giver() : Desk(true, as(WorkerRole::prefill)) {
    for (const ActorName& actor : {kQueue, kTaker, kOtherTaker}) hear(ActorFound{actor, Incarnation{1}});
  }
  /// Until the first token, and the question that follows it.
  HandOver offer(const Run& run) {
    hear(run);
    step({{tokens(std::uint64_t(run.request), 0)}, {{run.request, Tokens{3}, true}}, Micros(400)}, at(1000));
    return said<HandOver>(kTaker).at(0);
  }
  void answer(const ActorName& who, ErrorCode code = ErrorCode::none, Attempt attempt = 1) {
    hear(HandOverEnded{RequestId{1}, attempt, who, code, code == ErrorCode::none ? "" : "full"});
  }
};

/// A worker that decodes.
struct Taker : Desk {
  Taker() : Desk(true, as(WorkerRole::decode)) {
    for (const ActorName& actor : {kQueue, kTaker}) hear(ActorFound{actor, Incarnation{1}});
  }
};

HandOver offered(std::uint64_t request, Attempt attempt = 1) {
  HandOver letter;
  letter.run = run_of(request, attempt);
  letter.run.generated = {40};
  letter.said = tokens(request, 0);
  letter.said.attempt = attempt;
  letter.from = kTaker;
  letter.incarnation = Incarnation{3};
  return letter;
}

}  // namespace

TEST_CASE("the first token goes to the gateway and the run to the best worker, and this one says no more of it") {
  Giver desk;
  const HandOver letter = desk.offer(for_others(1));
  CHECK(desk.said<TokensProduced>(kGateway).size() == 1);
  CHECK(desk.said<PrefillFinished>(kScheduler).size() == 1);
  CHECK(letter.run.generated == std::vector<TokenId>{0});
  CHECK(letter.run.prompt == std::vector<TokenId>{1, 2, 3});
  CHECK(letter.run.decode_on.empty());
  CHECK(letter.said.tokens == std::vector<TokenId>{0});
  CHECK(letter.from == kGiver);
  CHECK(letter.incarnation == Incarnation{7});
  CHECK(letter.kv.digest == "1");  // the place is asked for with the first token
  CHECK(desk.runner.prefilling == std::vector{RequestId{1}});

  desk.answer(kTaker);
  CHECK(desk.runner.prefilling.empty());
  CHECK(desk.out.letters.empty());
  desk.hear(RunMoved{RequestId{1}, 1, kModel, kGiver, kTaker});  // the queue passes it on
  CHECK(desk.said<RunEnded>(kQueue).empty());
  CHECK(desk.said<TokensProduced>(kGateway).empty());
  CHECK(desk.said<InstanceState>(kLifecycle).at(0).live == 0);
  desk.hear(for_others(1));
  CHECK(desk.out.letters.empty());  // an echo
}

TEST_CASE("refused, it asks the next one that is there, and with none left decodes itself") {
  Giver desk;
  desk.offer(for_others(1));
  desk.answer(kTaker, ErrorCode::exhausted);
  REQUIRE(desk.said<HandOver>(kOtherTaker).size() == 1);
  CHECK(desk.runner.prefilling == std::vector{RequestId{1}});
  desk.answer(kTaker);  // it was asked before, and is not any more
  CHECK(desk.runner.prefilling == std::vector{RequestId{1}});
  desk.answer(kOtherTaker, ErrorCode::exhausted);
  CHECK(desk.runner.prefilling.empty());
  CHECK(desk.runner.live == std::vector{RequestId{1}});
  REQUIRE(desk.out.logs.size() == 1);
  CHECK(desk.out.logs[0].event == "worker.decodes_itself");

  desk.step({{tokens(1, 1, FinishReason::length)}, {{RequestId{1}, Tokens{1}, true}}, Micros(9)}, at(2000));
  CHECK(desk.said<RunEnded>(kQueue).at(0).produced == Tokens{2});
  CHECK(desk.said<PrefillFinished>(kScheduler).empty());  // of an attempt there is one
}

TEST_CASE("where nobody decodes it decodes itself, and without a holder says so at the start") {
  Giver desk;
  desk.hear(ActorLost{kTaker, Incarnation{1}, "killed"});
  desk.hear(ActorLost{kOtherTaker, Incarnation{1}, "killed"});
  desk.hear(for_others(1));
  desk.step({{tokens(1, 0)}, {{RequestId{1}, Tokens{3}, true}}, Micros(400)}, at(1000));
  CHECK(desk.said<HandOver>(kTaker).empty());
  CHECK(desk.runner.live == std::vector{RequestId{1}});
  CHECK(desk.runner.prefilling.empty());

  WorkerOptions alone = as(WorkerRole::prefill);
  alone.holder.clear();
  ScriptedRunner::State state;
  WorkerCore worker(alone, std::make_unique<ScriptedRunner>(state));
  Outbox out;
  worker.start(at(0), out);
  REQUIRE(out.logs.size() == 1);
  CHECK(out.logs[0].event == "worker.hands_nothing_over");
}

TEST_CASE("a run that ends with its first token is not handed over") {
  Giver desk;
  desk.hear(for_others(1));
  desk.step({{tokens(1, 0, FinishReason::length)}, {{RequestId{1}, Tokens{3}, true}}, Micros(400)}, at(1000));
  CHECK(desk.said<HandOver>(kTaker).empty());
  CHECK(desk.said<RunEnded>(kQueue).at(0).finish == FinishReason::length);
  CHECK(desk.runner.prefilling.empty());
}

TEST_CASE("a cancel while the prompt is computed ends it here; while another is asked, where it goes on") {
  Giver desk;
  SUBCASE("while the prompt is computed") {
    desk.hear(for_others(1));
    desk.hear(Cancel{RequestId{1}});
    CHECK(desk.said<RunEnded>(kQueue).size() == 1);
    CHECK(desk.runner.prefilling.empty());
  }
  SUBCASE("while another is asked, which takes it") {
    desk.offer(for_others(1));
    desk.hear(Cancel{RequestId{1}});
    CHECK(desk.said<RunEnded>(kQueue).empty());
    CHECK(desk.runner.prefilling == std::vector{RequestId{1}});  // it may be reading
    desk.answer(kTaker);
    CHECK(desk.said<RunEnded>(kQueue).empty());
    CHECK(desk.runner.prefilling.empty());
  }
  SUBCASE("while another is asked, which refuses") {
    desk.offer(for_others(1));
    desk.hear(Cancel{RequestId{1}});
    CHECK(desk.said<TokensProduced>(kGateway).at(0).finish == FinishReason::cancelled);
    desk.answer(kTaker, ErrorCode::exhausted);
    CHECK(desk.said<HandOver>(kOtherTaker).empty());
    CHECK(desk.said<RunEnded>(kQueue).at(0).finish == FinishReason::cancelled);
    CHECK(desk.said<TokensProduced>(kGateway).empty());  // it has had its last word
    CHECK(desk.runner.prefilling.empty());
  }
}

TEST_CASE("the death of the one that was asked has the gateway submit the run again") {
  Giver desk;
  desk.offer(for_others(1));
  desk.hear(ActorLost{kOtherTaker, Incarnation{1}, "killed"});
  CHECK(desk.out.letters.empty());
  desk.hear(ActorLost{kTaker, Incarnation{1}, "killed"});
  const TokensProduced last = desk.said<TokensProduced>(kGateway).at(0);
  CHECK(last.finish == FinishReason::failed);
  CHECK(last.code == ErrorCode::unavailable);
  CHECK(last.first == 1);
  CHECK(desk.said<RunEnded>(kQueue).size() == 1);
  CHECK(desk.runner.prefilling.empty());
}

TEST_CASE("a taker that dies before the queue knows of it is answered for by the giver; after that, no more") {
  Giver desk;
  desk.offer(for_others(1));
  desk.answer(kTaker);
  SUBCASE("before") {
    desk.hear(ActorLost{kTaker, Incarnation{1}, "killed"});
    CHECK(desk.said<TokensProduced>(kGateway).at(0).code == ErrorCode::unavailable);
    CHECK(desk.said<RunEnded>(kQueue).size() == 1);
  }
  SUBCASE("after") {
    desk.hear(RunMoved{RequestId{1}, 1, kModel, kGiver, kTaker});
    desk.hear(ActorLost{kTaker, Incarnation{1}, "killed"});
    CHECK(desk.out.letters.empty());
  }
  SUBCASE("the queue is lost, too") {
    desk.hear(ActorLost{kQueue, Incarnation{1}, "killed"});
    CHECK(desk.said<InstanceState>(kLifecycle).at(0).live == 0);
    CHECK(desk.said<RunEnded>(kScheduler).empty());
  }
}

TEST_CASE("a lost queue or gateway ends what is asked for only when the answer is there") {
  Giver desk;
  desk.offer(for_others(1));
  desk.hear(ActorLost{kQueue, Incarnation{1}, "killed"});
  CHECK(desk.said<RunEnded>(kQueue).empty());
  desk.answer(kTaker, ErrorCode::unavailable);
  CHECK(desk.said<TokensProduced>(kGateway).empty());
  CHECK(desk.said<RunEnded>(kScheduler).at(0).finish == FinishReason::cancelled);
}

TEST_CASE("a newer attempt takes the place of one that another is asked for, and the old answer means nothing") {
  Giver desk;
  desk.offer(for_others(1));
  desk.hear(for_others(1, 2));
  CHECK(desk.said<RunEnded>(kQueue).at(0).attempt == 1);
  CHECK(desk.runner.prefilling == std::vector{RequestId{1}});
  desk.answer(kTaker);
  CHECK(desk.runner.prefilling == std::vector{RequestId{1}});
  CHECK(desk.worker.busy());
}

TEST_CASE("who takes a run tells all of it, repeats the last word, goes on, and ends it") {
  Taker desk;
  desk.hear(offered(1));
  CHECK(desk.runner.taken.size() == 1);
  CHECK(desk.said<HandOverEnded>(kTaker).at(0).code == ErrorCode::none);
  for (const ActorName& hearer : {kQueue, kScheduler}) {
    const auto moved = desk.said<RunMoved>(hearer);
    REQUIRE(moved.size() == 1);
    CHECK(moved[0].from == kTaker);
    CHECK(moved[0].to == kGiver);
  }
  CHECK(desk.said<TokensProduced>(kGateway).at(0).first == 0);
  desk.step({{tokens(1, 1, FinishReason::stop)}, {}, Micros(9)}, at(1));
  CHECK(desk.said<TokensProduced>(kGateway).at(0).first == 1);
  CHECK(desk.said<RunEnded>(kQueue).at(0).produced == Tokens{2});
  CHECK(desk.said<PrefillFinished>(kScheduler).empty());
}

TEST_CASE("what cannot be taken leaves nothing, and only the one that asked hears of it") {
  Taker desk;
  const auto check_refused = [&](const HandOver& letter, ErrorCode code) {
    desk.hear(letter);
    REQUIRE(desk.said<HandOverEnded>(kTaker).size() == 1);
    CHECK(desk.said<HandOverEnded>(kTaker)[0].code == code);
    CHECK_FALSE(desk.said<HandOverEnded>(kTaker)[0].why.empty());
    CHECK(desk.out.letters.size() == 1);
    CHECK(desk.runner.live.empty());
  };
  SUBCASE("no pages") {
    desk.runner.next_take_over = make_error(ErrorCode::exhausted, "KV pages needed=4");
    check_refused(offered(1), ErrorCode::exhausted);
    desk.runner.next_take_over = {};
    desk.hear(offered(1));  // asked once more, later
    CHECK(desk.said<HandOverEnded>(kTaker).at(0).code == ErrorCode::none);
  }
  SUBCASE("a model of others") {
    HandOver letter = offered(1);
    letter.run.model = ModelId("B-count");
    desk.hear(ActorFound{queue_of(letter.run.model), Incarnation{1}});
    check_refused(letter, ErrorCode::not_found);
  }
  SUBCASE("a queue that is lost") {
    desk.hear(ActorLost{kQueue, Incarnation{1}, "killed"});
    check_refused(offered(1), ErrorCode::unavailable);
  }
  SUBCASE("an attempt that is over") {
    desk.hear(offered(1, 2));
    desk.hear(Cancel{RequestId{1}});
    check_refused(offered(1, 1), ErrorCode::unavailable);
  }
}
