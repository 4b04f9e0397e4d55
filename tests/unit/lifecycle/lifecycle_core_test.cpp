// Who is woken where, who makes room, who sleeps, and what operators are told.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "actors/lifecycle/lifecycle_core.hpp"
#include "tests/unit/lifecycle/lifecycle_kit.hpp"

namespace sangam {
namespace {

TEST_CASE("a wanted model that is about to leave is ordered to stay, where least is missing") {
  Stage stage;
  InstanceState leaving = state(kA, kOne, Residency::active, 2);
  leaving.target = Residency::warm;
  stage.tell(0, leaving);
  stage.tell(0, state(kA, kTwo, Residency::cold));
  stage.tell(10, Wanted{kA, 1});
  CHECK(stage.order().first == kOne);
  CHECK(stage.order().second.target == Residency::active);
}

TEST_CASE("runs that a worker's former life had do not weigh on its present one") {
  Stage stage;
  stage.tell(0, state(kB, kOne, Residency::active, 5));
  InstanceState reborn = state(kB, kOne, Residency::active, 0);
  reborn.incarnation = Incarnation{8};
  stage.tell(10, reborn);
  stage.tell(10, state(kA, kOne, Residency::cold));
  stage.tell(10, state(kB, kTwo, Residency::active, 1));
  stage.tell(10, state(kA, kTwo, Residency::cold));
  stage.tell(20, Wanted{kA, 1});
  CHECK(stage.order().first == kOne);  // The idler one.
}

TEST_CASE("a wanted model is woken once, by an order that names epoch and incarnation") {
  Stage stage;
  stage.tell(0, state(kA, kOne, Residency::cold));
  stage.tell(10, Wanted{kA, 3});
  const auto given = stage.order();
  CHECK(given.first == kOne);
  CHECK(given.second.model == kA);
  CHECK(given.second.target == Residency::active);
  CHECK(given.second.epoch == 5);
  CHECK(given.second.incarnation == Incarnation{7});
  stage.tell(20, Wanted{kA, 4});
  CHECK(stage.said<Order>().empty());
  stage.tell(30, state(kA, kOne, Residency::active));
  stage.end(30, given);
  stage.tell(40, Wanted{kA, 4});
  CHECK(stage.said<Order>().empty());  // It is there.
}

TEST_CASE("it is woken where there is room, then where it is warm, then where least is missing") {
  SUBCASE("room goes before warmth") {
    Stage stage;
    stage.tell(0, memory(kOne, 50));
    stage.tell(0, memory(kTwo, 500));
    stage.tell(0, state(kA, kOne, Residency::warm));
    stage.tell(0, state(kA, kTwo, Residency::cold));
    stage.tell(1, Wanted{kA, 1});
    CHECK(stage.order().first == kTwo);
  }
  SUBCASE("warmth goes before bytes") {
    Stage stage;
    stage.tell(0, memory(kOne, 500));
    stage.tell(0, memory(kTwo, 500));
    stage.tell(0, state(kA, kOne, Residency::warm));
    auto fewer = state(kA, kTwo, Residency::cold);
    fewer.missing = Bytes{10};
    stage.tell(0, fewer);
    stage.tell(1, Wanted{kA, 1});
    CHECK(stage.order().first == kOne);
  }
  SUBCASE("then fewer missing bytes") {
    Stage stage;
    stage.tell(0, state(kA, kOne, Residency::warm));
    auto fewer = state(kA, kTwo, Residency::warm);
    fewer.missing = Bytes{10};
    stage.tell(0, fewer);
    stage.tell(1, Wanted{kA, 1});
    CHECK(stage.order().first == kTwo);
  }
}

TEST_CASE("who is idle longest makes room first; the busy, the pinned and the wanted do not") {
  LifecycleOptions options;
  options.pinned = {ModelId("pinned")};
  Stage stage(options);
  stage.tell(0, state(ModelId("pinned"), kOne, Residency::active));
  stage.tell(0, state(kB, kOne, Residency::active, 1));
  stage.tell(0, state(kC, kOne, Residency::active));
  stage.tell(0, state(ModelId("busy"), kOne, Residency::active, 1));
  stage.tell(100, state(kB, kOne, Residency::active));  // Idle since 100, C since 0.
  stage.tell(2000, state(kA, kOne, Residency::cold));
  stage.tell(2000, Wanted{kA, 1});
  CHECK(stage.order().second.may_evict == std::vector<ModelId>{kC, kB});
}

TEST_CASE("a model that has just become active is not put to sleep for another") {
  Stage stage;
  stage.tell(1000, state(kB, kOne, Residency::active));
  stage.tell(1000, state(kA, kOne, Residency::cold));
  stage.tell(1500, Wanted{kA, 1});
  const auto given = stage.order();
  CHECK(given.second.may_evict.empty());
  stage.end(1600, given, ErrorCode::exhausted);
  CHECK(stage.said<Order>().empty());
  CHECK(stage.alarm() == at(1700));  // A failed order is tried again after 100 ms at the earliest;
  stage.wake(1700);
  CHECK(stage.said<Order>().empty());  // but nothing has changed by then.
  CHECK(stage.alarm() == at(2000));  // One second of dwell.
  stage.wake(2000);
  CHECK(stage.order().second.may_evict == std::vector<ModelId>{kB});
}

TEST_CASE("after patience, the one that has been there longest is drained; its requests move, none is dropped") {
  Stage stage;
  stage.tell(0, state(kB, kOne, Residency::active, 2));
  stage.tell(10, state(kC, kOne, Residency::active, 2));
  stage.tell(20, state(kA, kOne, Residency::warm));
  stage.tell(1000, Wanted{kA, 1});
  stage.end(1001, stage.order(), ErrorCode::exhausted);
  CHECK(stage.said<Order>().empty());
  stage.wake(5999);
  CHECK(stage.said<Order>().empty());
  stage.wake(6000);
  const auto given = stage.order();
  CHECK(given.second.model == kB);
  CHECK(given.second.target == Residency::warm);
  CHECK(given.second.drain_for == Millis(30'000));
  CHECK(given.second.at_deadline == AtDeadline::migrate);
  auto leaving = state(kB, kOne, Residency::active, 1);
  leaving.target = Residency::warm;
  stage.tell(6100, leaving);
  CHECK(stage.said<Order>().empty());  // One at a time.
  stage.tell(6200, state(kB, kOne, Residency::warm));
  CHECK(stage.order().second.model == kA);
}

TEST_CASE("a model that cannot be loaded cools down twice as long each time, and its queue is told") {
  Stage stage;
  stage.tell(0, state(kA, kOne, Residency::cold));
  stage.tell(0, Wanted{kA, 1});
  stage.end(100, stage.order(), ErrorCode::corrupt);
  auto told = stage.said<Unservable>();
  REQUIRE(told.size() == 1);
  CHECK(told[0].first == ActorName("queue/A"));
  CHECK(told[0].second.code == ErrorCode::corrupt);
  CHECK(told[0].second.why == "because");
  CHECK(told[0].second.retry_after == Millis(2000));
  stage.tell(1000, Wanted{kA, 1});
  CHECK(stage.said<Order>().empty());
  CHECK(stage.said<Unservable>().at(0).second.retry_after == Millis(1100));
  stage.tell(2100, Wanted{kA, 1});
  stage.end(2200, stage.order(), ErrorCode::corrupt);
  CHECK(stage.said<Unservable>().at(0).second.retry_after == Millis(4000));
  // A good load ends the series.
  stage.tell(6200, Wanted{kA, 1});
  const auto given = stage.order();
  stage.tell(6300, state(kA, kOne, Residency::active));
  stage.end(6300, given);
  stage.tell(6350, Wanted{kA, 0});
  stage.tell(6400, state(kA, kOne, Residency::cold));
  stage.tell(6500, Wanted{kA, 1});
  stage.end(6600, stage.order(), ErrorCode::corrupt);
  CHECK(stage.said<Unservable>().at(0).second.retry_after == Millis(2000));
}

TEST_CASE("a broken copy on one worker does not keep the model from another") {
  Stage stage;
  stage.tell(0, state(kA, kOne, Residency::cold));
  stage.tell(0, state(kA, kTwo, Residency::cold));
  stage.tell(0, Wanted{kA, 1});
  const auto first = stage.order();
  stage.end(100, first, ErrorCode::corrupt);
  const auto second = stage.order();
  CHECK(second.first != first.first);
  CHECK(stage.said<Unservable>().empty());
}

TEST_CASE("idle sleep counts from the last token, and wanted or pinned models stay") {
  LifecycleOptions options;
  options.idle_sleep = Millis(10'000);
  options.pinned = {kB};
  Stage stage(options);
  stage.tell(0, state(kA, kOne, Residency::active, 1));
  stage.tell(0, state(kB, kOne, Residency::active));
  CHECK(stage.alarm() == at(10'000));
  stage.wake(20'000);
  CHECK(stage.said<Order>().empty());  // A generates, B is pinned.
  stage.tell(30'000, state(kA, kOne, Residency::active));
  CHECK(stage.said<Order>().empty());
  CHECK(stage.alarm() == at(40'000));
  stage.wake(39'999);
  CHECK(stage.said<Order>().empty());
  stage.wake(40'000);
  const auto given = stage.order();
  CHECK(given.second.model == kA);
  CHECK(given.second.target == Residency::warm);
  CHECK(given.second.idle_at_least == Millis(10'000));
}

TEST_CASE("two clients that take turns on two models swap no more often than the dwell allows, and none starves") {
  Stage stage;
  std::map<ModelId, Residency> residency{{kA, Residency::active}, {kB, Residency::warm}};
  stage.tell(0, state(kA, kOne, Residency::active));
  stage.tell(0, state(kB, kOne, Residency::warm));
  int swaps = 0;
  std::map<ModelId, std::int64_t> waits_since, longest;
  for (std::int64_t now = 10; now <= 60'000; now += 10) {
    // Both are wanted all the time; who is there serves at once and is idle again.
    std::vector<std::pair<ActorName, Order>> orders;
    for (const ModelId& model : {kA, kB}) {
      if (residency[model] == Residency::active) {
        stage.tell(now, Wanted{model, 0});
      } else {
        waits_since.try_emplace(model, now);
        stage.tell(now, Wanted{model, 1});
      }
      for (auto& order : stage.said<Order>()) orders.push_back(order);
    }
    for (const auto& given : orders) {
      const ModelId other = given.second.model == kA ? kB : kA;
      const auto& offer = given.second.may_evict;
      if (std::find(offer.begin(), offer.end(), other) == offer.end()) {
        stage.end(now, given, ErrorCode::exhausted);
        continue;
      }
      ++swaps;
      residency[other] = Residency::warm;
      residency[given.second.model] = Residency::active;
      stage.tell(now, state(other, kOne, Residency::warm));
      stage.tell(now, state(given.second.model, kOne, Residency::active));
      stage.end(now, given);
      longest[given.second.model] = std::max(longest[given.second.model], now - waits_since[given.second.model]);
      waits_since.erase(given.second.model);
    }
  }
  CHECK(swaps <= 60);  // One a second of dwell.
  CHECK(swaps >= 50);
  CHECK(longest[kA] <= 1'200);
  CHECK(longest[kB] <= 1'200);
}

TEST_CASE("an operator's command ends when its last order has, and tells of each") {
  Stage stage;
  stage.tell(0, state(kA, kOne, Residency::active));
  stage.tell(0, state(kA, kTwo, Residency::active));
  stage.tell(0, state(kB, kTwo, Residency::warm));
  stage.tell(10, command(1, CommandVerb::sleep));
  const auto orders = stage.said<Order>();
  REQUIRE(orders.size() == 2);  // B sleeps already.
  stage.end(20, orders[0]);
  CHECK(stage.said<CommandEnded>().empty());
  stage.end(30, orders[1], ErrorCode::unavailable);
  const auto ended = stage.said<CommandEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].first == kGateway);
  CHECK(ended[0].second.command == 1);
  CHECK(ended[0].second.code == ErrorCode::unavailable);
  CHECK(ended[0].second.orders.size() == 2);
}

TEST_CASE("a command for what is so already ends at once and well; one for what is unknown, badly") {
  Stage stage;
  stage.tell(0, state(kA, kOne, Residency::active));
  stage.tell(10, command(1, CommandVerb::wake, {kA}));
  REQUIRE(stage.said<CommandEnded>().size() == 1);
  CHECK(stage.said<CommandEnded>()[0].second.code == ErrorCode::none);
  stage.tell(10, command(2, CommandVerb::wake, {kB}));
  CHECK(stage.said<CommandEnded>().at(0).second.code == ErrorCode::not_found);
  auto elsewhere = command(3, CommandVerb::sleep, {kA});
  elsewhere.workers = {kTwo};
  stage.tell(10, elsewhere);
  CHECK(stage.said<CommandEnded>().at(0).second.code == ErrorCode::not_found);
}

TEST_CASE("a pinned model stays when room is wanted, until an operator puts it to sleep") {
  Stage stage;
  stage.tell(0, state(kB, kOne, Residency::warm));
  auto pin = command(1, CommandVerb::wake, {kB});
  pin.pin = true;
  stage.tell(0, pin);
  const auto given = stage.order();
  stage.tell(10, state(kB, kOne, Residency::active));
  stage.end(10, given);
  stage.tell(5'000, state(kA, kOne, Residency::cold));
  stage.tell(5'000, Wanted{kA, 1});
  CHECK(stage.order().second.may_evict.empty());
  stage.tell(5'001, command(2, CommandVerb::sleep, {kB}));
  CHECK(stage.order().second.model == kB);
}

TEST_CASE("a model that is active already can be pinned") {
  Stage stage;
  stage.tell(0, state(kB, kOne, Residency::active));
  auto pin = command(1, CommandVerb::wake, {kB});
  pin.pin = true;
  stage.tell(0, pin);
  CHECK(stage.said<CommandEnded>().size() == 1);
  CHECK(stage.order().first == kOne);  // so that the worker remembers
  CHECK(stage.order().second.pin);
  CHECK(stage.order().second.target == Residency::active);
  stage.tell(5'000, state(kA, kOne, Residency::cold));
  stage.tell(5'000, Wanted{kA, 1});
  CHECK(stage.order().second.may_evict.empty());
}

TEST_CASE("a pin outlives the lifecycle in what the workers say, until an order has the model leave") {
  Stage next;
  auto pinned = state(kB, kOne, Residency::active);
  pinned.pinned = true;
  next.tell(0, pinned);
  next.tell(5'000, state(kA, kOne, Residency::cold));
  next.tell(5'000, Wanted{kA, 1});
  CHECK(next.order().second.may_evict.empty());
  next.tell(5'001, command(1, CommandVerb::sleep, {kB}));
  CHECK_FALSE(next.order().second.pin);
  next.tell(5'001, pinned);  // said before it had the order
  next.tell(5'002, state(kB, kOne, Residency::warm));
  next.tell(5'002, command(2, CommandVerb::wake, {kB}));
  CHECK_FALSE(next.order().second.pin);
}

TEST_CASE("a fork copies from where the model is active to where it is not") {
  Stage stage;
  stage.tell(0, state(kA, kOne, Residency::active));
  stage.tell(0, state(kA, kTwo, Residency::cold));
  stage.tell(0, command(1, CommandVerb::fork, {kA}));
  const auto given = stage.order();
  CHECK(given.first == kTwo);
  CHECK(given.second.sources == std::vector<ActorName>{kOne});
}

TEST_CASE("a lost worker fails its orders; a restarted one is told anew under its new incarnation") {
  Stage stage;
  stage.tell(0, state(kA, kOne, Residency::cold));
  stage.tell(0, command(1, CommandVerb::wake, {kA}));
  stage.tell(10, ActorLost{kOne, Incarnation{7}, "killed"});
  REQUIRE(stage.said<CommandEnded>().size() == 1);
  CHECK(stage.said<CommandEnded>()[0].second.code == ErrorCode::unavailable);
  CHECK(stage.said<CommandEnded>()[0].second.why == "worker/1 was lost: killed");
  auto back = state(kA, kOne, Residency::cold);
  back.incarnation = Incarnation{8};
  stage.tell(20, back);
  stage.tell(30, Wanted{kA, 1});
  CHECK(stage.order().second.incarnation == Incarnation{8});
}

TEST_CASE("more commands than are allowed at once are refused, and say so") {
  LifecycleOptions options;
  options.commands_max = 1;
  Stage stage(options);
  stage.tell(0, state(kA, kOne, Residency::cold));
  stage.tell(0, state(kB, kOne, Residency::cold));
  stage.tell(0, command(1, CommandVerb::wake, {kA}));
  stage.tell(0, command(2, CommandVerb::wake, {kB}));
  const auto ended = stage.said<CommandEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].second.command == 2);
  CHECK(ended[0].second.code == ErrorCode::queue_full);
}

}  // namespace
}  // namespace sangam
