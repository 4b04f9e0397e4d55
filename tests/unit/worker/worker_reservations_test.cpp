// Pages that are set aside while a prompt is computed elsewhere: whatever happens at which moment, none stays.
#include <doctest/doctest.h>

#include "tests/unit/worker/worker_kit.hpp"

using namespace sangam;
using namespace sangam::worker_kit;

namespace {

const ActorName kGiver("worker/1"), kTaker("worker/2"), kOtherTaker("worker/3");
constexpr Timer kPull{3};

WorkerOptions as(WorkerRole role) {
  WorkerOptions changed = options();
  changed.role = role;
  changed.holder = "/run/holder.sock";
  return changed;
}

Run for_others(Attempt attempt = 1) {
  Run run = run_of(1, attempt);
  run.decode_on = {kTaker, kOtherTaker};
  return run;
}

/// The model is to sleep now.
Order leave(AtDeadline how = AtDeadline::stay) {
  Order order;
  order.operation = 1;
  order.epoch = 1;
  order.incarnation = Incarnation{7};
  order.model = kModel;
  order.target = Residency::warm;
  order.at_deadline = how;
  return order;
}

/// A worker that prefills, with two that decode around it.
struct Giver : Desk {
  Giver() : Desk(true, as(WorkerRole::prefill)) {
    runner.begins = true;
    for (const ActorName& actor : {kQueue, kTaker, kOtherTaker}) hear(ActorFound{actor, Incarnation{1}});
  }
  /// Lets the prompt in.
  void begin(const Run& run = for_others()) {
    hear(run);
    out.clear();
    worker.step(at(0), out);
  }
  void answer(const ActorName& who, ErrorCode code = ErrorCode::none, Attempt attempt = 1) {
    hear(KvReserved{RequestId{1}, attempt, who, code, ""});
  }
  void prefill(FinishReason finish = FinishReason::none, Attempt attempt = 1) {
    TokensProduced said = tokens(1, 0, finish);
    said.attempt = attempt;
    step({{said}, {{RequestId{1}, Tokens{3}, true}}, Micros(400)}, at(1000));
  }
  std::int64_t wished(const ActorName& of) const {
    const auto wishes = said<ReserveKv>(of);
    return wishes.empty() ? -1 : wishes.back().tokens.count();
  }
};

ReserveKv wish(Attempt attempt = 1, std::int64_t size = 3) {
  ReserveKv letter;
  letter.request = RequestId{1};
  letter.attempt = attempt;
  letter.model = kModel;
  letter.tokens = Tokens{size};
  letter.from = kTaker;
  letter.incarnation = Incarnation{3};
  return letter;
}

/// A worker that decodes. Who asks it is worker/2.
struct Taker : Desk {
  Taker() : Desk(true, as(WorkerRole::decode)) {
    for (const ActorName& actor : {kQueue, kTaker}) hear(ActorFound{actor, Incarnation{1}});
  }
  void wake(Instant now) {
    out.clear();
    worker.wake(kPull, now, out);
  }
  std::optional<Instant> next_pull() const {
    for (const Outbox::Alarm& alarm : out.alarms) {
      if (alarm.timer == kPull) return alarm.at;
    }
    return std::nullopt;
  }
};

HandOver offered(Attempt attempt = 1) {
  HandOver letter;
  letter.run = run_of(1, attempt);
  letter.run.generated = {40};
  letter.said = tokens(1, 0);
  letter.said.attempt = attempt;
  letter.from = kTaker;
  letter.incarnation = Incarnation{3};
  return letter;
}

}  // namespace

TEST_CASE("the best worker is asked for pages when a prompt is let in, before anything of it is computed") {
  Giver desk;
  desk.begin();
  REQUIRE(desk.said<ReserveKv>(kTaker).size() == 1);
  const ReserveKv asked = desk.said<ReserveKv>(kTaker)[0];
  CHECK(asked.request == RequestId{1});
  CHECK(asked.attempt == 1);
  CHECK(asked.model == kModel);
  CHECK(asked.tokens == Tokens{3});
  CHECK(asked.from == kGiver);
  CHECK(asked.incarnation == Incarnation{7});
  CHECK(desk.out.letters.size() == 1);  // and no step has been made
  desk.answer(kTaker);
  CHECK(desk.out.letters.empty());
  desk.prefill();
  CHECK(desk.said<HandOver>(kTaker).size() == 1);
  CHECK(desk.said<ReserveKv>(kTaker).empty());
}

TEST_CASE("who refuses to set pages aside is not asked again, the next one is, and gets the run first") {
  Giver desk;
  desk.begin();
  desk.answer(kTaker, ErrorCode::exhausted);
  CHECK(desk.wished(kOtherTaker) == 3);
  SUBCASE("it does") { desk.answer(kOtherTaker); }
  SUBCASE("it has not answered yet") {}
  SUBCASE("it refuses, too: the run goes to the best again") {
    desk.answer(kOtherTaker, ErrorCode::exhausted);
    CHECK(desk.out.letters.empty());
    desk.prefill();
    CHECK(desk.said<HandOver>(kTaker).size() == 1);
    return;
  }
  desk.prefill();
  CHECK(desk.said<HandOver>(kTaker).empty());
  REQUIRE(desk.said<HandOver>(kOtherTaker).size() == 1);
  desk.answer(kOtherTaker, ErrorCode::exhausted);  // an answer that is late means nothing
  CHECK(desk.out.letters.empty());
  desk.hear(HandOverEnded{RequestId{1}, 1, kOtherTaker, ErrorCode::exhausted, "full"});
  CHECK(desk.said<HandOver>(kTaker).size() == 1);
  CHECK(desk.wished(kOtherTaker) == -1);
}

TEST_CASE("where nobody is there nobody is asked, and one who comes later may still take the run") {
  Giver desk;
  for (const ActorName& lost : {kTaker, kOtherTaker}) desk.hear(ActorLost{lost, Incarnation{1}, "killed"});
  desk.begin();
  CHECK(desk.out.letters.empty());
  desk.hear(ActorFound{kOtherTaker, Incarnation{2}});
  desk.prefill();
  CHECK(desk.said<HandOver>(kOtherTaker).size() == 1);
}

TEST_CASE("a run that ends here has its pages given back there, at whatever moment it ends") {
  Giver desk;
  desk.hear(for_others());
  SUBCASE("before it is let in: nobody has been asked") {
    desk.hear(Cancel{RequestId{1}});
    CHECK(desk.wished(kTaker) == -1);
    return;
  }
  desk.out.clear();
  desk.worker.step(at(0), desk.out);
  SUBCASE("cancelled while one is asked") { desk.hear(Cancel{RequestId{1}}); }
  SUBCASE("cancelled when pages are set aside") {
    desk.answer(kTaker);
    desk.hear(Cancel{RequestId{1}});
  }
  SUBCASE("its gateway is lost") { desk.hear(ActorLost{kGateway, Incarnation{1}, "killed"}); }
  SUBCASE("its queue is lost") { desk.hear(ActorLost{kQueue, Incarnation{1}, "killed"}); }
  SUBCASE("its first token is its last") { desk.prefill(FinishReason::length); }
  SUBCASE("it fails") { desk.prefill(FinishReason::failed); }
  SUBCASE("a newer attempt comes") {
    desk.hear(for_others(2));
    CHECK(desk.said<ReserveKv>(kTaker).at(0).attempt == 1);
  }
  SUBCASE("its model leaves at once") {
    desk.hear(leave(AtDeadline::migrate));
  }
  CHECK(desk.wished(kTaker) == 0);
  CHECK(desk.wished(kOtherTaker) == -1);
}

TEST_CASE("what another one has taken or been offered is not given back by this one") {
  Giver desk;
  desk.begin();
  desk.answer(kTaker);
  desk.prefill();
  SUBCASE("cancelled") { desk.hear(Cancel{RequestId{1}}); }
  SUBCASE("taken") { desk.hear(HandOverEnded{RequestId{1}, 1, kTaker, ErrorCode::none, ""}); }
  CHECK(desk.wished(kTaker) == -1);
}

TEST_CASE("the death of the one that set pages aside has the next one asked") {
  Giver desk;
  desk.begin();
  desk.answer(kTaker);
  desk.hear(ActorLost{kTaker, Incarnation{1}, "killed"});
  CHECK(desk.wished(kOtherTaker) == 3);
  desk.hear(ActorLost{kOtherTaker, Incarnation{1}, "killed"});
  CHECK(desk.out.letters.empty());
  desk.prefill();
  CHECK(desk.runner.live == std::vector{RequestId{1}});  // it decodes itself
  desk.out.clear();
  desk.worker.wake(Timer{1}, at(2000), desk.out);
  CHECK(desk.said<InstanceStatus>(kGateway).at(0).self_decodes == 1);
}

TEST_CASE("pages are set aside, filled every 2 ms, and free after 10 s without progress") {
  Taker desk;
  desk.hear(wish(), at(0));
  CHECK(desk.said<KvReserved>(kTaker).at(0).code == ErrorCode::none);
  CHECK(desk.runner.set_aside.size() == 1);
  CHECK(desk.next_pull() == at(2'000));
  CHECK_FALSE(desk.worker.busy());
  desk.runner.pulled = {{RequestId{1}}, true};
  desk.wake(at(2'000));
  CHECK(desk.next_pull() == at(2'000));  // there is more
  desk.runner.pulled = {{RequestId{1}}, false};
  desk.wake(at(9'000'000));
  CHECK(desk.next_pull() == at(9'002'000));
  desk.runner.pulled = {};
  desk.wake(at(18'999'999));
  CHECK(desk.runner.set_aside.size() == 1);
  desk.wake(at(19'000'000));
  CHECK(desk.runner.set_aside.empty());
  CHECK_FALSE(desk.next_pull().has_value());
  CHECK(desk.out.logs.at(0).event == "worker.reservation_expired");
  desk.hear(offered());  // all at once, then
  CHECK(desk.said<HandOverEnded>(kTaker).at(0).code == ErrorCode::none);
}

TEST_CASE("what is set aside is free again when its run will not come") {
  Taker desk;
  desk.hear(wish());
  SUBCASE("the giver takes it back") { desk.hear(wish(1, 0)); }
  SUBCASE("the giver is lost") { desk.hear(ActorLost{kTaker, Incarnation{3}, "killed"}); }
  SUBCASE("its client leaves") { desk.hear(Cancel{RequestId{1}}); }
  SUBCASE("a newer attempt is to run here") { desk.hear(run_of(1, 2)); }
  SUBCASE("it is handed over") { desk.hear(offered()); }
  SUBCASE("it is handed over, and refused by the engine") {
    desk.runner.next_take_over = make_error(ErrorCode::corrupt, "not what their digest says");
    desk.hear(offered());
  }
  SUBCASE("it is handed over, and its queue is lost") {
    desk.hear(ActorLost{kQueue, Incarnation{1}, "killed"});
    desk.hear(offered());
  }
  SUBCASE("its model leaves") {
    desk.hear(leave());
    desk.worker.step(at(0), desk.out);
  }
  CHECK(desk.runner.set_aside.empty());
  desk.wake(at(2'000));
  CHECK_FALSE(desk.next_pull().has_value());
}

TEST_CASE("an older attempt's last word leaves a newer one's pages alone") {
  Taker desk;
  desk.hear(wish(1));
  desk.hear(wish(2));
  CHECK(desk.said<KvReserved>(kTaker).at(0).attempt == 2);
  REQUIRE(desk.runner.set_aside.size() == 1);
  desk.hear(wish(1, 0));
  REQUIRE(desk.runner.set_aside.size() == 1);
  CHECK(desk.runner.set_aside[0].attempt == 2);
}

TEST_CASE("pages that cannot be set aside are refused, and nothing has happened") {
  Taker desk;
  ErrorCode expected = ErrorCode::unavailable;
  SUBCASE("the pool has none") {
    desk.runner.next_reserve = make_error(ErrorCode::exhausted, "KV pages needed=4");
    expected = ErrorCode::exhausted;
  }
  SUBCASE("the attempt is over") {
    desk.hear(run_of(1, 2));
    desk.hear(Cancel{RequestId{1}});
  }
  SUBCASE("the model leaves") {
    desk.hear(leave());
  }
  SUBCASE("it has taken all that it may") {
    for (std::uint64_t other = 2; other <= 4; ++other) desk.hear(run_of(other));
  }
  desk.hear(wish());
  REQUIRE(desk.said<KvReserved>(kTaker).size() == 1);
  CHECK(desk.said<KvReserved>(kTaker)[0].code == expected);
  CHECK_FALSE(desk.said<KvReserved>(kTaker)[0].why.empty());
  CHECK(desk.runner.set_aside.empty());
}
