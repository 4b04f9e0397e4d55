// Orders to a worker: fenced, joined, answered once; and what becomes of live requests.
#include <doctest/doctest.h>

#include <random>

#include "tests/unit/worker/worker_kit.hpp"

using namespace sangam;
using namespace sangam::worker_kit;

namespace {

Order order(std::uint64_t operation, Residency target, ModelId model = kModel) {
  Order o;
  o.operation = operation;
  o.epoch = 3;
  o.incarnation = Incarnation{7};
  o.model = std::move(model);
  o.target = target;
  return o;
}

/// The only answer of the last event.
OrderEnded answer(const Desk& desk) {
  const auto ended = desk.said<OrderEnded>(kLifecycle);
  REQUIRE(ended.size() == 1);
  return ended[0];
}

std::vector<std::string> texts(const std::vector<ModelId>& models) {
  std::vector<std::string> all;
  for (const ModelId& model : models) all.push_back(model.text());
  return all;
}

}  // namespace

TEST_CASE("a model is put to sleep and woken by orders; all who listen follow, each step once") {
  Desk desk;
  desk.hear(order(1, Residency::warm));
  CHECK(desk.said<InstanceGone>(kScheduler).size() == 1);
  CHECK(desk.said<InstanceGone>(kGateway).size() == 1);
  const auto leaving = desk.said<InstanceState>(kGateway).at(0);
  CHECK(leaving.residency == Residency::active);
  CHECK(leaving.target == Residency::warm);
  CHECK(desk.said<OrderEnded>(kLifecycle).empty());
  desk.out.clear();
  desk.finish_moves();
  CHECK(answer(desk).operation == 1);
  CHECK(answer(desk).code == ErrorCode::none);
  CHECK(answer(desk).residency == Residency::warm);
  CHECK(answer(desk).phases.at(0).name == "copy");
  // The other model has more room now, and says so.
  CHECK(desk.said<InstanceReady>(kScheduler).size() == 1);
  CHECK(desk.said<InstanceReady>(kScheduler)[0].model == kOther);

  desk.hear(order(2, Residency::active));
  desk.finish_moves();
  CHECK(answer(desk).residency == Residency::active);
  CHECK(desk.said<InstanceReady>(kScheduler).size() == 2);
}

TEST_CASE("an order of an older epoch, for another incarnation or for a strange model does nothing") {
  Desk desk;
  desk.hear(order(1, Residency::warm, kOther));
  desk.finish_moves();
  SUBCASE("older epoch") {
    Order old = order(9, Residency::warm);
    old.epoch = 2;
    desk.hear(old);
    CHECK(answer(desk).code == ErrorCode::unavailable);
    CHECK(answer(desk).why.find("epoch 2") != std::string::npos);
  }
  SUBCASE("another incarnation") {
    Order other = order(9, Residency::warm);
    other.incarnation = Incarnation{6};
    desk.hear(other);
    CHECK(answer(desk).code == ErrorCode::unavailable);
  }
  SUBCASE("a model of others") {
    desk.hear(order(9, Residency::warm, ModelId("B")));
    CHECK(answer(desk).code == ErrorCode::not_found);
  }
  CHECK_FALSE(desk.worker.busy());
  CHECK(desk.runner.residencies[kModel] == Residency::active);
}

TEST_CASE("an order that comes twice acts once and gets the same answer") {
  Desk desk;
  desk.hear(order(1, Residency::warm));
  desk.hear(order(1, Residency::warm));
  CHECK(desk.out.letters.empty());  // It is under way.
  desk.finish_moves();
  CHECK(answer(desk).operation == 1);
  desk.hear(order(2, Residency::active));
  desk.finish_moves();
  desk.hear(order(1, Residency::warm));  // An echo from before.
  CHECK(answer(desk).residency == Residency::warm);
  CHECK_FALSE(desk.worker.busy());
  CHECK(desk.runner.residencies[kModel] == Residency::active);
}

TEST_CASE("an operator's pin is remembered and told, until an order has the model leave") {
  Desk desk;
  Order pin = order(1, Residency::active);
  pin.pin = true;
  desk.hear(pin);  // It is active already.
  CHECK(answer(desk).code == ErrorCode::none);
  CHECK(desk.said<InstanceState>(kLifecycle).at(0).pinned);
  desk.hear(order(2, Residency::active));
  CHECK(desk.said<InstanceState>(kLifecycle).empty());
  desk.hear(ActorFound{kLifecycle, Incarnation{2}});
  CHECK(desk.said<InstanceState>(kLifecycle).at(0).pinned);
  CHECK_FALSE(desk.said<InstanceState>(kLifecycle).at(1).pinned);
  desk.hear(order(3, Residency::warm));
  CHECK_FALSE(desk.said<InstanceState>(kLifecycle).back().pinned);
}

TEST_CASE("wakes that come together join, and each is answered by the one load") {
  Desk desk;
  desk.hear(order(1, Residency::warm));
  desk.finish_moves();
  desk.runner.pieces = 3;
  desk.hear(order(2, Residency::active));
  desk.worker.step(at(0), desk.out);
  desk.worker.step(at(0), desk.out);
  desk.hear(order(3, Residency::active));
  desk.finish_moves();
  const auto ended = desk.said<OrderEnded>(kLifecycle);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].operation == 2);
  CHECK(ended[1].operation == 3);
  CHECK(ended[1].residency == Residency::active);
}

TEST_CASE("an order for elsewhere abandons the move and ends its orders as cancelled") {
  Desk desk;
  desk.hear(order(1, Residency::warm));
  desk.finish_moves();
  desk.runner.pieces = 3;
  desk.hear(order(2, Residency::active));
  desk.worker.step(at(0), desk.out);
  desk.hear(order(3, Residency::cold));
  CHECK(answer(desk).operation == 2);
  CHECK(answer(desk).code == ErrorCode::cancelled);
  CHECK(desk.runner.abandoned == 1);
  desk.out.clear();
  desk.finish_moves();
  CHECK(answer(desk).operation == 3);
  CHECK(answer(desk).residency == Residency::cold);
}

TEST_CASE("a busy model does not sleep at once unless it is told what becomes of its requests") {
  Desk desk;
  desk.hear(run_of(1));
  desk.hear(order(1, Residency::warm));
  CHECK(answer(desk).code == ErrorCode::unavailable);
  CHECK(answer(desk).why.find("live requests=1") != std::string::npos);
  CHECK(desk.said<InstanceGone>(kScheduler).empty());
  desk.hear(run_of(2));
  CHECK(desk.said<TokensProduced>(kGateway).empty());  // It still takes runs.
}

TEST_CASE("a drain takes no more runs, lets the others end, then sleeps") {
  Desk desk;
  desk.hear(run_of(1));
  Order drain = order(1, Residency::warm);
  drain.drain_for = Millis(1000);
  desk.hear(drain);
  CHECK(desk.said<InstanceGone>(kScheduler).size() == 1);
  CHECK(desk.out.alarms.at(0).at == at(1'000'000));
  CHECK(desk.said<OrderEnded>(kLifecycle).empty());
  desk.hear(run_of(2));
  CHECK(desk.said<TokensProduced>(kGateway).at(0).code == ErrorCode::unavailable);
  desk.step({{tokens(1, 0, FinishReason::stop)}, {}, Micros(1)}, at(10));
  desk.out.clear();
  desk.finish_moves();
  CHECK(answer(desk).residency == Residency::warm);
}

TEST_CASE("when a drain's time is up, the model stays, or its requests are cancelled, or they move on") {
  Desk desk;
  desk.hear(run_of(1));
  desk.step({{tokens(1, 0)}, {}, Micros(1)}, at(10));
  Order drain = order(1, Residency::warm);
  drain.drain_for = Millis(1000);
  SUBCASE("stay") {
    desk.hear(drain);
    desk.out.clear();
    desk.worker.wake(ModelKeeper::kDrain, at(1'000'000), desk.out);
    CHECK(answer(desk).code == ErrorCode::unavailable);
    CHECK(desk.said<InstanceReady>(kScheduler).size() == 1);  // It takes runs again.
    CHECK(desk.runner.live == std::vector{RequestId{1}});
  }
  SUBCASE("cancel") {
    drain.at_deadline = AtDeadline::cancel;
    desk.hear(drain);
    desk.out.clear();
    desk.worker.wake(ModelKeeper::kDrain, at(1'000'000), desk.out);
    CHECK(desk.said<TokensProduced>(kGateway).at(0).finish == FinishReason::cancelled);
    CHECK(desk.said<RunEnded>(kQueue).size() == 1);
    CHECK(desk.runner.live.empty());
    desk.finish_moves();
    CHECK(answer(desk).residency == Residency::warm);
  }
  SUBCASE("migrate") {
    drain.at_deadline = AtDeadline::migrate;
    desk.hear(drain);
    desk.out.clear();
    desk.worker.wake(ModelKeeper::kDrain, at(1'000'000), desk.out);
    const auto last = desk.said<TokensProduced>(kGateway).at(0);
    CHECK(last.finish == FinishReason::failed);
    CHECK(last.code == ErrorCode::unavailable);  // By which its gateway submits it again.
    CHECK(last.first == 1);
    desk.finish_moves();
    CHECK(answer(desk).residency == Residency::warm);
  }
}

TEST_CASE("idle sleep is refused by the worker's own clock") {
  Desk desk;
  desk.hear(run_of(1));
  desk.step({{tokens(1, 0, FinishReason::stop)}, {}, Micros(0)}, at(500'000));
  Order sleep = order(1, Residency::warm);
  sleep.idle_at_least = Millis(1000);
  desk.hear(sleep, at(1'499'999));
  CHECK(answer(desk).code == ErrorCode::unavailable);
  sleep.operation = 2;
  desk.hear(sleep, at(1'500'000));
  CHECK(desk.said<OrderEnded>(kLifecycle).empty());
  CHECK(desk.worker.busy());
}

TEST_CASE("room is made by as few idle models as will do, by bytes, and only if that helps") {
  Desk desk;
  desk.runner.pool = 100;
  desk.runner.sizes = {{kModel, 60}, {kOther, 50}};
  desk.hear(order(1, Residency::warm));
  desk.finish_moves();
  // kOther holds 50 of 100; kModel needs 60.
  SUBCASE("nobody may go") {
    desk.hear(order(2, Residency::active));
    desk.finish_moves();
    CHECK(answer(desk).code == ErrorCode::exhausted);
    CHECK(desk.runner.residencies[kOther] == Residency::active);
  }
  SUBCASE("the other may go") {
    Order wake = order(2, Residency::active);
    wake.may_evict = {kOther};
    desk.hear(wake);
    desk.finish_moves();
    CHECK(answer(desk).code == ErrorCode::none);
    CHECK(texts(answer(desk).evicted) == std::vector<std::string>{"A-date"});
    CHECK(desk.runner.residencies[kOther] == Residency::warm);
    CHECK(desk.runner.residencies[kModel] == Residency::active);
  }
  SUBCASE("the other may go but is busy") {
    desk.hear(run_of(1, 1, kOther));
    Order wake = order(2, Residency::active);
    wake.may_evict = {kOther};
    desk.hear(wake);
    desk.out.clear();
    desk.worker.step(at(0), desk.out);
    CHECK(answer(desk).code == ErrorCode::exhausted);
    CHECK(desk.runner.live.size() == 1);
  }
  SUBCASE("its going would not be enough") {
    desk.runner.sizes[kModel] = 101;
    Order wake = order(2, Residency::active);
    wake.may_evict = {kOther};
    desk.hear(wake);
    desk.finish_moves();
    CHECK(answer(desk).code == ErrorCode::exhausted);
    CHECK(desk.runner.residencies[kOther] == Residency::active);
  }
}

TEST_CASE("a load that fails is told with its reason, and the next one may be good") {
  Desk desk;
  desk.hear(order(1, Residency::cold));
  desk.finish_moves();
  desk.runner.broken.emplace(kModel, make_error(ErrorCode::corrupt, "shard 2 is cut"));
  desk.hear(order(2, Residency::active));
  desk.finish_moves();
  CHECK(answer(desk).code == ErrorCode::corrupt);
  CHECK(desk.said<InstanceGone>(kGateway).back().why == "shard 2 is cut");
  CHECK(desk.said<InstanceState>(kLifecycle).back().code == ErrorCode::corrupt);
  desk.runner.broken.clear();
  desk.hear(order(3, Residency::active));
  desk.finish_moves();
  CHECK(answer(desk).code == ErrorCode::none);
  CHECK(desk.said<InstanceState>(kLifecycle).back().code == ErrorCode::none);
}

TEST_CASE("who loses its copy in host memory, or gets none, is cold, and all who listen know") {
  Desk desk;
  desk.hear(order(1, Residency::warm));
  desk.finish_moves();
  Order sleep = order(2, Residency::warm, kOther);
  desk.hear(sleep);
  desk.runner.demoted = {kModel, kOther};
  desk.out.clear();
  desk.finish_moves();
  CHECK(answer(desk).residency == Residency::cold);
  std::map<ModelId, Residency> told;
  for (const InstanceState& state : desk.said<InstanceState>(kGateway)) told[state.model] = state.residency;
  CHECK(told[kModel] == Residency::cold);
  CHECK(told[kOther] == Residency::cold);
}

TEST_CASE("streams go on between the pieces of a load") {
  Desk desk;
  desk.hear(order(1, Residency::warm));
  desk.finish_moves();
  desk.runner.pieces = 100;
  desk.hear(run_of(5, 1, kOther));
  desk.hear(order(2, Residency::active));
  int tokens_seen = 0;
  for (int i = 0; i < 20; ++i) {
    desk.out.clear();
    desk.runner.outcomes.push_back({{tokens(5, std::uint64_t(i))}, {}, Micros(1)});
    desk.worker.step(at(i), desk.out);
    tokens_seen += int(desk.said<TokensProduced>(kGateway).size());
  }
  CHECK(tokens_seen == 10);
}

TEST_CASE("whatever orders and runs come, each order ends once and no live model leaves") {
  const std::uint64_t seed = 77;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Desk desk;
  desk.runner.pool = 15;  // One of two.
  desk.runner.pieces = 2;
  std::map<std::uint64_t, int> ends;
  std::uint64_t operations = 0;
  std::uint64_t requests = 0;
  const auto look = [&] {
    for (const OrderEnded& ended : desk.said<OrderEnded>(kLifecycle)) ++ends[ended.operation];
    std::int64_t active = 0;
    for (const auto& [model, residency] : desk.runner.residencies) active += residency == Residency::active;
    CHECK(active <= 2);
  };
  for (int event = 0; event < 20'000; ++event) {
    const Instant now = at(event * 1000);
    const ModelId& model = random() % 2 ? kModel : kOther;
    switch (random() % 6) {
      case 0: {
        Order o = order(++operations, Residency(random() % 3), model);
        o.drain_for = Millis(random() % 3);
        o.at_deadline = AtDeadline(random() % 3);
        if (random() % 2) o.may_evict = {model == kModel ? kOther : kModel};
        desk.hear(o, now);
        look();
        break;
      }
      case 1:
        desk.hear(run_of(++requests, 1, model), now);
        look();
        break;
      case 2:
        desk.out.clear();
        desk.worker.wake(ModelKeeper::kDrain, now, desk.out);
        look();
        break;
      default: {
        desk.out.clear();
        if (!desk.worker.busy()) break;
        if (!desk.runner.live.empty()) {
          const auto any = std::uint64_t(desk.runner.live[random() % desk.runner.live.size()]);
          desk.runner.outcomes = {{{tokens(any, 0, FinishReason::stop)}, {}, Micros(1)}};
        }
        desk.worker.step(now, desk.out);
        look();
      }
    }
  }
  for (int i = 0; i < 100; ++i) {
    desk.out.clear();
    desk.worker.wake(ModelKeeper::kDrain, at(1'000'000'000), desk.out);
    while (!desk.runner.live.empty()) desk.hear(Cancel{desk.runner.live.front()});
    if (desk.worker.busy()) desk.worker.step(at(1'000'000'000), desk.out);
    look();
  }
  CHECK(ends.size() == operations);
  for (const auto& [operation, count] : ends) CHECK_MESSAGE(count == 1, operation);
  CHECK(operations > 2000);
}
