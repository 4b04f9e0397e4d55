// Actors that come, die and return: what the queue owes to the requests that they had.
#include <doctest/doctest.h>

#include "tests/unit/queue/queue_kit.hpp"

using namespace sangam;
using namespace sangam::queue_kit;

namespace {
const ActorName kOtherGateway{"gateway/2"};

ActorLost lost(const ActorName& actor) {
  return {actor, Incarnation(1), "killed"};
}
ActorFound found(const ActorName& actor) {
  return {actor, Incarnation(2)};
}
}  // namespace

TEST_CASE(
    "when a worker dies, each of its requests is interrupted and keeps its place for the next attempt") {
  Desk desk;
  desk.tell(0, submit(1));
  const auto rank = desk.only<Enqueued>().rank;
  for (std::uint64_t id = 2; id <= 4; ++id) desk.tell(0, submit(id));
  for (std::uint64_t id = 1; id <= 2; ++id) desk.tell(0, dispatch(id, 1, kWorker));
  desk.tell(0, dispatch(3, 1, kOtherWorker));
  desk.tell(5, lost(kWorker));
  const auto interrupted = desk.said<Interrupted>(kGateway);
  REQUIRE(interrupted.size() == 2);
  CHECK(interrupted[0].request == RequestId(1));
  CHECK(interrupted[0].attempt == 1);
  CHECK(interrupted[0].why.find("worker/1") != std::string::npos);
  CHECK(desk.status(5).running == 1);

  desk.tell(6, again(submit(1), 2, {9}));
  CHECK(desk.only<Enqueued>().rank == rank);
  desk.tell(7, dispatch(1, 2, kOtherWorker));
  CHECK(desk.only<Run>(kOtherWorker).generated == std::vector<TokenId>{9});
}

TEST_CASE("an interrupted request that nobody submits again is forgotten after a while") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(0, dispatch(1));
  desk.tell(1'000, lost(kWorker));
  REQUIRE(desk.out.alarms.size() == 1);
  CHECK(desk.out.alarms[0].at == at(31'000));
  desk.wake(31'000, desk.out.alarms[0].timer);
  CHECK(desk.out.letters.empty());
  desk.tell(31'001, lost(kGateway));  // Nothing is left to cancel.
  CHECK(desk.out.letters.empty());
}

TEST_CASE("a cancelled request whose worker dies is not interrupted, since nobody waits for it") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(0, dispatch(1));
  desk.tell(1, Cancel{RequestId(1)});
  desk.tell(2, lost(kWorker));
  CHECK(desk.said<Interrupted>().empty());
  CHECK(desk.status(2).running == 0);
}

TEST_CASE("when a gateway dies, its requests are cancelled everywhere and those of others go on") {
  Desk desk;
  desk.tell(0, found(kOtherGateway));
  desk.tell(0, submit(1));
  desk.tell(0, submit(2));
  Submit other = submit(3);
  other.tokens_to = kOtherGateway;
  desk.tell(0, other);
  desk.tell(0, dispatch(1));
  desk.tell(1, lost(kGateway));
  CHECK(desk.only<Cancel>(kWorker).request == RequestId(1));
  CHECK(desk.only<Withdrawn>(kScheduler).request == RequestId(2));
  CHECK(desk.said<Interrupted>().empty());
  desk.tell(2, dispatch(3));
  CHECK(desk.only<Run>(kWorker).request == RequestId(3));
}

TEST_CASE("a request that arrives after the loss of its gateway is never executed") {
  Desk desk;
  desk.tell(0, lost(kGateway));
  desk.tell(1, submit(1));
  desk.tell(2, dispatch(1));
  CHECK(desk.said<Run>().empty());
  CHECK(desk.only<Withdrawn>(kScheduler).request == RequestId(1));
}

TEST_CASE("a dispatch to a worker that is not there is undone, and announced anew when an actor appears") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(1, lost(kWorker));
  desk.tell(2, dispatch(1, 1, kWorker));
  REQUIRE(desk.out.letters.size() == 1);
  CHECK(std::holds_alternative<Withdrawn>(desk.out.letters[0].message));
  desk.tell(3, found(kWorker));
  CHECK(desk.only<Enqueued>(kScheduler).request == RequestId(1));
  desk.tell(4, found(kOtherGateway));
  CHECK(desk.said<Enqueued>().empty());
  desk.tell(5, dispatch(1, 1, kOtherWorker));
  CHECK(desk.said<Run>(kOtherWorker).size() == 1);
}

TEST_CASE(
    "a scheduler that starts anew is told of all that waits, with the time that is left, and of nothing "
    "else") {
  Desk desk;
  desk.tell(0, with_deadline(1, Millis(500)));
  desk.tell(0, submit(2));
  desk.tell(0, submit(3));
  desk.tell(0, dispatch(3));
  desk.tell(50, lost(kScheduler));
  CHECK(desk.out.letters.empty());
  desk.tell(100, submit(4));
  CHECK(desk.said<Accepted>().size() == 1);
  desk.tell(200, found(kScheduler));
  const auto told = desk.said<Enqueued>(kScheduler);
  REQUIRE(told.size() == 3);
  CHECK(told[0].request == RequestId(1));
  CHECK(told[0].ttft_in == Millis(300));
  CHECK(told[1].request == RequestId(2));
  CHECK(told[2].request == RequestId(4));
  desk.tell(201, ended(3));
  CHECK(desk.status(300).running == 0);
}

TEST_CASE("gateways that are there are told the counts twice a second") {
  Desk desk;
  desk.tell(0, found(kOtherGateway));
  desk.tell(0, submit(1));
  desk.wake(500, Timer(2));
  CHECK(desk.said<QueueStatus>().size() == 2);
  const auto status = desk.only<QueueStatus>(kOtherGateway);
  CHECK(status.waiting == 1);
  CHECK(status.waiting_tokens == Tokens(100));
  REQUIRE(desk.out.alarms.size() == 1);
  CHECK(desk.out.alarms[0].at == at(1'000));
  desk.tell(600, lost(kOtherGateway));
  desk.wake(1'000, Timer(2));
  CHECK(desk.said<QueueStatus>().size() == 1);
}

TEST_CASE("a count that falls to zero is told at once, and one that falls to another number is not") {
  Desk desk;
  desk.tell(0, submit(1));
  desk.tell(0, submit(2));
  desk.tell(1, dispatch(1));
  CHECK(desk.said<QueueStatus>().empty());
  desk.tell(2, dispatch(2));
  CHECK(desk.only<QueueStatus>(kGateway).waiting == 0);
  desk.tell(3, ended(1));
  CHECK(desk.said<QueueStatus>().empty());
  desk.tell(4, ended(2));
  CHECK(desk.only<QueueStatus>(kGateway).running == 0);
}
