// A request's way through the queue: what each message causes, and what it must not cause.
#include <doctest/doctest.h>

#include "tests/unit/queue/queue_kit.hpp"

using namespace sangam;
using namespace sangam::queue_kit;

TEST_CASE("a submitted request is accepted at once and announced in numbers, never with its prompt") {
  Desk desk;
  desk.tell(0, again(submit(1, 100), 1, {}));
  CHECK(desk.only<Accepted>(kGateway).attempt == 1);
  const auto enqueued = desk.only<Enqueued>(kScheduler);
  CHECK(enqueued.request == RequestId(1));
  CHECK(enqueued.model == kModel);
  CHECK(enqueued.prefill_tokens == Tokens(10));
  CHECK(enqueued.output_max == Tokens(90));
  CHECK(enqueued.service_class == ServiceClass::normal);
}

TEST_CASE("a dispatched request goes to its worker whole, and its gateway learns where and after how long") {
  Desk desk;
  Submit s = submit(1);
  s.sampling.seed = 42;
  desk.tell(0, s);
  desk.tell(250, dispatch(1));
  const Run run = desk.only<Run>(kWorker);
  CHECK(run.prompt == s.prompt);
  CHECK(run.sampling.seed == 42);
  CHECK(run.tenant == s.tenant);
  CHECK(run.tokens_to == kGateway);
  CHECK(run.estimated == Micros(1234));
  const auto started = desk.only<Started>(kGateway);
  CHECK(started.worker == kWorker);
  CHECK(started.queued == Millis(250));
  CHECK(desk.status(300).running == 1);
  desk.tell(400, ended(1));
  CHECK(desk.status(500).running == 0);
}

TEST_CASE("a dispatch of what is unknown, runs already, or has ended is answered with Withdrawn only") {
  Desk desk;
  const auto only_withdrawn = [&](std::uint64_t id) {
    desk.tell(1, dispatch(id));
    CHECK(desk.only<Withdrawn>(kScheduler).request == RequestId(id));
    CHECK(desk.said<Run>().empty());
    CHECK(desk.said<Enqueued>().empty());
  };
  only_withdrawn(1);
  desk.tell(0, submit(1));
  desk.tell(0, dispatch(1));
  only_withdrawn(1);
  desk.tell(2, ended(1));
  only_withdrawn(1);
}

TEST_CASE("a dispatch of an older attempt is undone, and the newer attempt is announced after it") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(1, again(submit(1), 2));
  CHECK(desk.only<Enqueued>().attempt == 2);
  desk.tell(2, dispatch(1, 1));
  CHECK(desk.said<Run>().empty());
  REQUIRE(desk.out.letters.size() == 2);
  CHECK(std::holds_alternative<Withdrawn>(desk.out.letters[0].message));
  CHECK(std::get<Enqueued>(desk.out.letters[1].message).attempt == 2);
  desk.tell(3, dispatch(1, 2));
  CHECK(desk.only<Run>(kWorker).attempt == 2);
}

TEST_CASE("a repeated submission is answered again and changes nothing; an older one is ignored") {
  Desk desk;
  desk.tell(0, again(submit(1), 2));
  desk.tell(1, again(submit(1), 2));
  CHECK(desk.only<Accepted>().attempt == 2);
  CHECK(desk.said<Enqueued>().empty());
  desk.tell(2, submit(1));
  CHECK(desk.out.letters.empty());
  CHECK(desk.status(3).waiting == 1);
}

TEST_CASE("a newer attempt keeps the place of the older one") {
  Desk desk;
  desk.tell(0, submit(1));
  const auto first = desk.only<Enqueued>().rank;
  desk.tell(0, submit(2));
  desk.tell(1, again(submit(1), 2, {5, 6}));
  const auto enqueued = desk.only<Enqueued>();
  CHECK(enqueued.rank == first);
  CHECK(enqueued.prefill_tokens == Tokens(12));
  CHECK(enqueued.output_max == Tokens(88));
  desk.tell(2, dispatch(1, 2));
  CHECK(desk.only<Run>().generated == std::vector<TokenId>{5, 6});
}

TEST_CASE("a newer attempt of a running request stops the older one, whose end means nothing any more") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(0, dispatch(1));
  desk.tell(1, again(submit(1), 2));
  CHECK(desk.only<Cancel>(kWorker).request == RequestId(1));
  desk.tell(2, dispatch(1, 2, kOtherWorker));
  desk.tell(3, ended(1, 1, kWorker));
  CHECK(desk.status(3).running == 1);
  desk.tell(4, ended(1, 2, kOtherWorker));
  CHECK(desk.status(5).running == 0);
}

TEST_CASE("a waiting request that is cancelled is gone at once") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(1, Cancel{RequestId(1)});
  CHECK(desk.only<Withdrawn>(kScheduler).request == RequestId(1));
  CHECK(desk.said<Cancel>().empty());
  CHECK(desk.status(2).waiting == 0);
  desk.tell(3, Cancel{RequestId(1)});
  CHECK(desk.out.letters.empty());
}

TEST_CASE(
    "a running request that is cancelled is stopped on its worker once and freed when its run has ended") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(0, dispatch(1));
  desk.tell(1, Cancel{RequestId(1)});
  CHECK(desk.only<Cancel>(kWorker).request == RequestId(1));
  desk.tell(2, Cancel{RequestId(1)});
  CHECK(desk.out.letters.empty());
  CHECK(desk.status(2).running == 1);
  desk.tell(3, ended(1));
  CHECK(desk.status(3).running == 0);
}

TEST_CASE("what has expired is refused and withdrawn, and its timer was set for just that instant") {
  Desk desk;
  Submit s = submit(1);
  s.expires_in = Millis(200);
  desk.tell(1'000, s);
  REQUIRE(desk.out.alarms.size() == 1);
  CHECK(desk.out.alarms[0].at == at(1'200));
  const Timer due = desk.out.alarms[0].timer;
  desk.wake(1'199, due);
  CHECK(desk.out.letters.empty());
  REQUIRE(desk.out.alarms.size() == 1);
  desk.wake(1'200, due);
  CHECK(desk.only<Refused>(kGateway).code == ErrorCode::expired);
  CHECK(desk.only<Withdrawn>(kScheduler).request == RequestId(1));
  CHECK(desk.status(1'200).expired == 1);
  CHECK(desk.status(1'200).waiting == 0);
}

TEST_CASE("what has expired is not executed, even when the dispatch comes before the timer") {
  Desk desk;
  Submit s = submit(1);
  s.expires_in = Millis(200);
  desk.tell(0, s);
  desk.tell(200, dispatch(1));
  CHECK(desk.said<Run>().empty());
  CHECK(desk.only<Refused>().code == ErrorCode::expired);
  CHECK(desk.only<Withdrawn>().request == RequestId(1));
  desk.tell(0, s);
  desk.tell(199, dispatch(1));
  CHECK(desk.said<Run>().size() == 1);
}

TEST_CASE(
    "a deadline that passes while waiting ends in a refusal, at the timer and at a late dispatch alike") {
  for (const bool by_timer : {true, false}) {
    CAPTURE(by_timer);
    Desk desk;
    desk.tell(100, with_deadline(1, Millis(50)));
    CHECK(desk.only<Enqueued>().ttft_in == Millis(50));
    if (by_timer)
      desk.wake(150, Timer(1));
    else
      desk.tell(150, dispatch(1));
    CHECK(desk.only<Refused>(kGateway).code == ErrorCode::cannot_be_on_time);
    CHECK(desk.only<Withdrawn>(kScheduler).request == RequestId(1));
    CHECK(desk.said<Run>().empty());
    CHECK(desk.status(150).refused == 1);
  }
}

TEST_CASE("a late request that may be requeued becomes best effort, behind everything normal") {
  Desk desk;
  desk.tell(0, submit(1));
  const auto normal = desk.only<Enqueued>().rank;
  desk.tell(0, with_deadline(2, Millis(50), true));
  desk.wake(50, Timer(1));
  CHECK(desk.said<Refused>().empty());
  const auto lowered = desk.said<Enqueued>(kScheduler);
  REQUIRE(lowered.size() == 1);
  CHECK(lowered[0].request == RequestId(2));
  CHECK(lowered[0].service_class == ServiceClass::best_effort);
  CHECK(lowered[0].rank > normal);
  desk.tell(60, dispatch(2));
  CHECK(desk.only<Run>(kWorker).service_class == ServiceClass::best_effort);
}

TEST_CASE("the scheduler's verdict refuses with the time after which the same patience would do") {
  Desk desk;
  desk.tell(0, with_deadline(1, Millis(200)));
  desk.tell(10, CannotBeOnTime{RequestId(1), 1, Millis(900)});
  const auto refused = desk.only<Refused>(kGateway);
  CHECK(refused.code == ErrorCode::cannot_be_on_time);
  CHECK(refused.retry_after == Millis(700));
  CHECK(desk.status(10).waiting == 0);

  desk.tell(20, with_deadline(2, Millis(200)));
  desk.tell(20, CannotBeOnTime{RequestId(2), 1, Millis(0)});
  CHECK(desk.only<Refused>().retry_after == Millis(0));  // Nobody knows.
}

TEST_CASE(
    "the scheduler's verdict lowers what may be requeued, and means nothing for another attempt or class") {
  Desk desk;
  desk.tell(0, with_deadline(1, Millis(200), true));
  desk.tell(10, CannotBeOnTime{RequestId(1), 7, Millis(900)});
  CHECK(desk.out.letters.empty());
  desk.tell(10, CannotBeOnTime{RequestId(1), 1, Millis(900)});
  CHECK(desk.only<Enqueued>().service_class == ServiceClass::best_effort);
  desk.tell(11, CannotBeOnTime{RequestId(1), 1, Millis(900)});
  CHECK(desk.out.letters.empty());
  desk.tell(12, submit(2));
  desk.tell(12, CannotBeOnTime{RequestId(2), 1, Millis(900)});
  CHECK(desk.out.letters.empty());
}

TEST_CASE("a quote goes on to the gateway while the request waits or runs, and not for another attempt") {
  Desk desk;
  const auto quoted = [](Attempt attempt) {
    return Quoted{RequestId(1), attempt, Millis(20), Millis(50), ErrorCode::none, Millis(0)};
  };
  desk.tell(0, quoted(1));
  CHECK(desk.out.letters.empty());
  desk.tell(0, submit(1));
  desk.tell(1, quoted(1));
  CHECK(desk.only<Quoted>(kGateway).earliest == Millis(20));
  CHECK(desk.only<Quoted>(kGateway).latest == Millis(50));
  desk.tell(1, quoted(2));
  CHECK(desk.out.letters.empty());
  desk.tell(2, dispatch(1));
  desk.tell(2, quoted(1));
  CHECK(desk.said<Quoted>(kGateway).size() == 1);
  desk.tell(3, ended(1));
  desk.tell(3, quoted(1));
  CHECK(desk.out.letters.empty());
}

TEST_CASE("times off the wire at their extremes neither overflow nor hold up the queue") {
  Desk desk;
  desk.tell(0, with_deadline(1, Millis::max()));
  desk.tell(0, CannotBeOnTime{RequestId(1), 1, Millis::max()});
  CHECK(desk.only<Refused>().retry_after >= Millis(1));
  desk.tell(0, with_deadline(2, Millis::min()));
  desk.wake(1, Timer(1));
  CHECK(desk.only<Refused>().code == ErrorCode::cannot_be_on_time);
  Submit s = submit(3);
  s.expires_in = Millis::max();
  desk.tell(2, s);
  desk.tell(3, dispatch(3));
  CHECK(desk.said<Run>().size() == 1);
  s = submit(4);
  s.sampling.max_tokens = Tokens(std::numeric_limits<std::int64_t>::max());
  desk.tell(4, s);
  CHECK(desk.only<Refused>().code == ErrorCode::invalid_input);
}

TEST_CASE("a request whose client has tokens is held to no first-token deadline and does not expire") {
  Desk desk;
  Submit s = with_deadline(1, Millis(50));
  s.expires_in = Millis(60);
  desk.tell(0, s);
  desk.tell(1, dispatch(1));
  desk.tell(500, ActorLost{kWorker, Incarnation(1), "killed"});
  desk.tell(510, again(s, 2, {1, 2, 3}));
  const auto enqueued = desk.only<Enqueued>();
  CHECK(enqueued.service_class == ServiceClass::normal);
  CHECK(enqueued.rank == 0);  // Before all that has no deadline.
  desk.tell(9'000, dispatch(1, 2, kOtherWorker));
  CHECK(desk.only<Run>(kOtherWorker).generated.size() == 3);
}

TEST_CASE("best effort is promoted by a second announcement when its floor share is due") {
  Desk desk;
  for (std::uint64_t id = 1; id <= 3; ++id) desk.tell(0, submit(id));
  desk.tell(0, best_effort(10));
  CHECK(desk.only<Enqueued>().rank > (std::uint64_t(1) << 62));
  desk.tell(1, dispatch(1));
  const auto promoted = desk.only<Enqueued>(kScheduler);
  CHECK(promoted.request == RequestId(10));
  CHECK(promoted.attempt == 1);
  CHECK(promoted.rank == 0);
}

TEST_CASE("a model that cannot be had: what waits learns the cause, what comes is told when, what runs goes on") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(1, dispatch(1));
  desk.tell(2, submit(2));
  desk.tell(10, Unservable{kModel, ErrorCode::corrupt, "shard 2 is cut", Millis(2'000)});
  const auto refused = desk.only<Refused>();
  CHECK(refused.request == RequestId(2));
  CHECK(refused.code == ErrorCode::corrupt);
  CHECK(refused.why.find("shard 2 is cut") != std::string::npos);
  CHECK(refused.retry_after == Millis(0));
  desk.tell(510, submit(3));
  CHECK(desk.only<Refused>().code == ErrorCode::unavailable);
  CHECK(desk.only<Refused>().retry_after == Millis(1'500));
  desk.tell(600, ended(1));
  CHECK(desk.said<Refused>().empty());
  desk.tell(2'010, submit(4));
  CHECK(desk.said<Accepted>().size() == 1);
}

namespace {

RunMoved moved(std::uint64_t id, Attempt attempt = 1) {
  return {RequestId(id), attempt, kModel, kWorker, kOtherWorker};
}

}  // namespace

TEST_CASE("the worker learns where its run is to go on") {
  Desk desk;
  desk.tell(0, submit(1));
  Dispatch named = dispatch(1);
  named.decode_on = {kOtherWorker};
  desk.tell(1, named);
  CHECK(desk.only<Run>(kWorker).decode_on == std::vector{kOtherWorker});
}

TEST_CASE("a run that has moved is ended, cancelled and interrupted where it is now") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(1, dispatch(1));
  desk.tell(2, moved(1));
  CHECK(desk.out.letters.size() == 2);
  CHECK(desk.only<RunMoved>(kWorker).to == kOtherWorker);
  CHECK(desk.only<Started>(kGateway).worker == kOtherWorker);
  CHECK(desk.only<Started>(kGateway).queued == Millis(1));
  desk.tell(3, ended(1));  // of the worker that has it no longer
  CHECK(desk.status(3).running == 1);
  SUBCASE("ended") {
    desk.tell(4, ended(1, 1, kOtherWorker));
    CHECK(desk.status(5).running == 0);
  }
  SUBCASE("cancelled") {
    desk.tell(4, Cancel{RequestId(1)});
    CHECK(desk.only<Cancel>(kOtherWorker).request == RequestId(1));
    CHECK(desk.said<Cancel>(kWorker).empty());
  }
  SUBCASE("interrupted") {
    desk.tell(4, ActorLost{kWorker, Incarnation(1), "killed"});
    CHECK(desk.said<Interrupted>().empty());
    desk.tell(5, ActorLost{kOtherWorker, Incarnation(1), "killed"});
    CHECK(desk.only<Interrupted>(kGateway).attempt == 1);
  }
}

TEST_CASE("a run that moves while it is cancelled is cancelled there, too") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(1, dispatch(1));
  desk.tell(2, Cancel{RequestId(1)});
  CHECK(desk.said<Cancel>(kWorker).size() == 1);
  desk.tell(3, moved(1));
  CHECK(desk.said<Cancel>(kOtherWorker).size() == 1);
  desk.tell(4, ended(1, 1, kOtherWorker));
  CHECK(desk.status(5).running == 0);
}

TEST_CASE("a run that moves when nobody waits for it any more is stopped where it has gone") {
  Desk desk;
  desk.tell(0, moved(9));
  CHECK(desk.only<Cancel>(kOtherWorker).request == RequestId(9));

  desk.tell(0, submit(1));
  desk.tell(1, dispatch(1));
  desk.tell(2, ActorLost{kWorker, Incarnation(1), "killed"});
  desk.tell(3, moved(1));
  CHECK(desk.said<Cancel>(kOtherWorker).size() == 1);
  desk.tell(4, again(submit(1), 2, {5}));
  desk.tell(5, dispatch(1, 2, kOtherWorker));
  desk.tell(6, moved(1));  // that worker has ended it for the later attempt
  CHECK(desk.said<Cancel>().empty());
}
