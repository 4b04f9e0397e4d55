// What planners want becomes orders: step by step, make before break, and never against an operator's pin.
#include <algorithm>

#include "tests/unit/lifecycle/lifecycle_kit.hpp"

namespace sangam {
namespace {

Plan plan(std::uint64_t epoch, std::vector<PlannedInstance> instances) {
  Plan p;
  p.by = ActorName("autoscaler");
  p.epoch = epoch;
  p.models = {kA, kB};
  p.workers = {kOne, kTwo};
  p.instances = std::move(instances);
  return p;
}

PlannedInstance planned(const ModelId& model, const ActorName& worker, std::int64_t step = 0,
                        WorkerRole role = WorkerRole::mixed) {
  PlannedInstance instance;
  instance.model = model;
  instance.worker = worker;
  instance.role = role;
  instance.step = step;
  return instance;
}

/// Two workers, both models cold on both.
Stage two_workers(LifecycleOptions options = {}) {
  Stage stage(std::move(options));
  for (const ActorName& worker : {kOne, kTwo}) {
    stage.tell(0, memory(worker, 1000));
    for (const ModelId& model : {kA, kB}) stage.tell(0, state(model, worker, Residency::cold));
  }
  return stage;
}

void becomes_active(Stage& stage, std::int64_t millis, const std::pair<ActorName, Order>& given,
                    std::int64_t live = 0) {
  stage.tell(millis, state(given.second.model, given.first, Residency::active, live));
  stage.end(millis, given);
}

TEST_CASE("what a plan names is woken there, as what and from whom the plan says; an older plan changes nothing") {
  Stage stage = two_workers();
  PlannedInstance instance = planned(kA, kTwo, 0, WorkerRole::decode);
  instance.sources = {kOne};
  stage.tell(10, plan(2, {instance}));
  const auto given = stage.order();
  CHECK(given.first == kTwo);
  CHECK(given.second.model == kA);
  CHECK(given.second.role == WorkerRole::decode);
  CHECK(given.second.sources == std::vector{kOne});
  stage.tell(20, plan(1, {planned(kB, kOne)}));
  CHECK(stage.said<Order>().empty());
  becomes_active(stage, 30, given);
  stage.tell(40, plan(3, {planned(kA, kTwo, 0, WorkerRole::prefill)}));
  CHECK(stage.order().second.role == WorkerRole::prefill);  // Only its role has changed; it is ordered all the same.
}

TEST_CASE("a step waits for the one before") {
  Stage stage = two_workers();
  stage.tell(10, plan(1, {planned(kA, kOne, 0), planned(kB, kTwo, 1)}));
  const auto first = stage.order();
  CHECK(first.second.model == kA);
  stage.tell(20, state(kA, kOne, Residency::active));
  const auto second = stage.order();
  CHECK(second.second.model == kB);
  CHECK(second.first == kTwo);
}

TEST_CASE("who is in no plan leaves when its model is up elsewhere, and a busy one not before") {
  Stage stage = two_workers();
  stage.tell(0, state(kA, kOne, Residency::active, 3));
  stage.tell(2'000, plan(1, {planned(kA, kTwo)}));
  const auto up = stage.order();
  CHECK(up.first == kTwo);
  CHECK(up.second.target == Residency::active);
  stage.tell(2'500, state(kA, kTwo, Residency::active));
  const auto down = stage.order();
  CHECK(down.first == kOne);
  CHECK(down.second.target == Residency::warm);
  CHECK(down.second.at_deadline == AtDeadline::migrate);
  CHECK(down.second.drain_for > Millis(0));
}

TEST_CASE("a busy one whose room a newcomer needs leaves at once, an idle one is evicted by the newcomer's order") {
  Stage stage = two_workers();
  stage.tell(0, state(kA, kOne, Residency::active, 3));
  stage.tell(2'000, plan(1, {planned(kA, kTwo), planned(kB, kOne)}));
  const auto both = stage.said<Order>();
  REQUIRE(both.size() == 2);  // Nobody leaves yet: the model is not up elsewhere.
  CHECK(both[1].second.model == kB);
  CHECK(both[1].second.may_evict.empty());
  stage.end(2'010, both[1], ErrorCode::exhausted);
  const auto down = stage.order();
  CHECK(down.second.model == kA);
  CHECK(down.second.target == Residency::warm);

  Stage idle = two_workers();
  idle.tell(0, state(kA, kOne, Residency::active));
  idle.tell(0, plan(1, {planned(kA, kOne)}));
  idle.tell(2'000, plan(2, {planned(kB, kOne)}));
  const auto orders = idle.said<Order>();
  const auto woken = std::find_if(orders.begin(), orders.end(), [](const auto& o) { return o.second.model == kB; });
  REQUIRE(woken != orders.end());
  CHECK(woken->second.may_evict == std::vector{kA});
}

TEST_CASE("pinned models, models of no plan and the planned of another planner stay") {
  LifecycleOptions options;
  options.pinned = {kA};
  Stage stage = two_workers(options);
  stage.tell(0, state(kA, kOne, Residency::active));
  stage.tell(0, state(kB, kTwo, Residency::active));
  Plan steady = plan(1, {planned(kB, kTwo)});
  steady.by = ActorName("placement");
  steady.models = {kB};
  steady.workers = {kTwo};
  stage.tell(2'000, steady);
  CHECK(stage.said<Order>().size() <= 1);  // At most that B's role is told.
  Plan elastic = plan(1, {});
  elastic.models = {kA};
  elastic.workers = {kOne};
  stage.tell(2'010, elastic);
  CHECK(stage.said<Order>().empty());
}

TEST_CASE("one that was just woken for waiting requests stays for the dwell, whatever the plan") {
  Stage stage = two_workers();
  stage.tell(0, plan(1, {}));
  stage.tell(1'000, Wanted{kA, 2});
  const auto given = stage.order();
  stage.tell(1'500, state(kA, given.first, Residency::active));
  stage.end(1'500, given);
  stage.tell(1'600, Wanted{kA, 0});
  CHECK(stage.said<Order>().empty());
  stage.tell(2'600, plan(2, {}));
  CHECK(stage.order().second.target == Residency::warm);
}

TEST_CASE("neither a worker that is gone nor a broken checkpoint holds up the next step") {
  Stage stage = two_workers();
  stage.tell(10, plan(1, {planned(kA, ActorName("worker/gone"), 0), planned(kA, kOne, 0), planned(kB, kTwo, 1)}));
  const auto first = stage.order();
  CHECK(first.first == kOne);
  stage.end(20, first, ErrorCode::corrupt);
  const auto second = stage.order();
  CHECK(second.first == kTwo);
  CHECK(second.second.model == kB);
}

}  // namespace
}  // namespace sangam
