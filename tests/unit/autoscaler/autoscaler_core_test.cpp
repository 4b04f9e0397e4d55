// Who gets which post: up at once, down late, never a worker of the placement, and nobody moved without need.
#include "actors/autoscaler/autoscaler_core.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

namespace sangam {
namespace {

const ModelId kA{"A"};
const ModelId kB{"B"};
const ActorName kLifecycle{"lifecycle"};

Instant at(std::int64_t millis) { return Instant(Millis(millis)); }
ActorName worker(int i) { return ActorName("worker/" + std::to_string(i)); }

/// `workers` workers that can hold both models.
class Desk {
 public:
  explicit Desk(int workers, AutoscalerOptions options = {}) : core_(std::move(options)) {
    core_.start(at(0), out_);
    for (int i = 1; i <= workers; ++i) {
      for (const ModelId& model : {kA, kB}) tell_state(i, model, Residency::warm);
    }
  }

  template <class M>
  void tell(std::int64_t millis, const M& message) {
    core_.on(message, at(millis), out_);
  }
  void tell_state(int i, const ModelId& model, Residency residency) {
    InstanceState state;
    state.worker = worker(i);
    state.model = model;
    state.residency = state.target = residency;
    tell(0, state);
  }
  /// The model needs this many workers to prefill, and one to decode.
  void need(std::int64_t millis, const ModelId& model, std::size_t prefill, double rate = 10.0) {
    ModelForecast f;
    f.model = model;
    f.requests_per_second = rate;
    f.prefill_attainment.assign(prefill, 0.5);
    f.prefill_attainment.back() = 1.0;
    f.decode_attainment = {1.0};
    f.mixed_attainment = {0.0};  // Mixed workers never suffice.
    tell(millis, Forecast{{f}});
  }
  const Plan& plan_at(std::int64_t millis) {
    out_.clear();
    core_.wake(Timer{1}, at(millis), out_);
    return core_.plan();
  }
  std::set<ActorName> posts(const ModelId& model, WorkerRole role) const {
    std::set<ActorName> workers;
    for (const PlannedInstance& instance : core_.plan().instances) {
      if (instance.model == model && instance.role == role) workers.insert(instance.worker);
    }
    return workers;
  }
  std::size_t prefill(const ModelId& model) const { return posts(model, WorkerRole::prefill).size(); }
  const Outbox& out() const { return out_; }

 private:
  AutoscalerCore core_;
  Outbox out_;
};

TEST_CASE("up at once, down when nothing has needed it for the hold, nobody else moved") {
  Desk desk(8);
  desk.need(0, kA, 2);
  desk.plan_at(500);
  CHECK(desk.prefill(kA) == 2);
  const auto before = desk.posts(kA, WorkerRole::prefill);
  desk.need(600, kA, 5);
  desk.plan_at(1'000);
  CHECK(desk.prefill(kA) == 5);
  const auto more = desk.posts(kA, WorkerRole::prefill);
  CHECK(std::includes(more.begin(), more.end(), before.begin(), before.end()));
  desk.need(1'100, kA, 1);
  desk.plan_at(1'500);
  CHECK(desk.prefill(kA) == 5);
  desk.need(10'000, kA, 3);  // A smaller peak within the hold keeps three.
  desk.plan_at(10'500);
  desk.need(10'600, kA, 1);
  desk.plan_at(11'000);
  CHECK(desk.prefill(kA) == 3);
  desk.plan_at(20'499);
  CHECK(desk.prefill(kA) == 3);
  desk.need(20'499, kA, 1);
  desk.plan_at(20'500);
  CHECK(desk.prefill(kA) == 1);
}

TEST_CASE("a model that nobody asks for has no worker, and a queue that fills brings one") {
  Desk desk(4);
  desk.need(0, kA, 1);
  desk.plan_at(500);
  CHECK(desk.prefill(kA) == 1);
  CHECK(desk.posts(kA, WorkerRole::decode).size() == 1);
  desk.need(1'000, kA, 1, 0.0);
  desk.plan_at(59'000);
  CHECK(desk.prefill(kA) == 1);
  desk.plan_at(60'500);
  CHECK(desk.prefill(kA) == 0);
  QueueStatus status;
  status.model = kA;
  status.waiting = 1;
  desk.tell(61'000, status);
  desk.plan_at(61'500);
  CHECK(desk.prefill(kA) == 1);
}

TEST_CASE("workers and models of the placement are its own, at once when it takes them") {
  Desk desk(4);
  desk.need(0, kA, 3);
  desk.plan_at(500);
  CHECK(desk.prefill(kA) == 3);
  Plan steady;
  steady.by = ActorName("placement");
  steady.epoch = 1;
  steady.workers = {worker(1), worker(2)};
  steady.models = {kB};
  desk.tell(600, steady);
  const auto left = desk.posts(kA, WorkerRole::prefill);
  CHECK(left.size() == 1);
  CHECK_FALSE(left.contains(worker(1)));
  CHECK_FALSE(left.contains(worker(2)));
  desk.need(700, kB, 2);
  desk.plan_at(1'000);
  CHECK(desk.prefill(kB) == 0);
  steady.epoch = 0;  // A letter of a former placement.
  steady.workers = {};
  desk.tell(1'100, steady);
  desk.plan_at(1'500);
  CHECK(desk.prefill(kA) == 1);
}

TEST_CASE("where the model is already comes first, and then whoever holds nothing") {
  Desk desk(4);
  desk.tell_state(1, kB, Residency::active);
  desk.tell_state(3, kA, Residency::active);
  desk.need(0, kA, 2);
  desk.plan_at(500);
  const auto posts = desk.posts(kA, WorkerRole::prefill);
  CHECK(posts == std::set{worker(2), worker(3)});
  const auto& plan = desk.plan_at(500);
  for (const PlannedInstance& instance : plan.instances) {
    if (instance.worker == worker(2)) CHECK(instance.sources == std::vector{worker(3)});  // The cheapest: a fork.
    if (instance.worker == worker(3)) CHECK(instance.sources.empty());
  }
}

TEST_CASE("a plan is said when it changes and again once in a while; a lost worker's post is given anew") {
  Desk desk(3);
  desk.need(0, kA, 1);
  desk.plan_at(500);
  CHECK(std::count_if(desk.out().letters.begin(), desk.out().letters.end(),
                      [](const auto& letter) { return letter.to == kLifecycle; }) == 1);
  const std::uint64_t epoch = desk.plan_at(1'000).epoch;
  CHECK(desk.out().letters.empty());
  CHECK(desk.plan_at(6'000).epoch == epoch + 1);
  CHECK_FALSE(desk.out().letters.empty());
  const ActorName held = *desk.posts(kA, WorkerRole::prefill).begin();
  desk.tell(6'100, ActorLost{held, Incarnation{1}, "killed"});
  CHECK(desk.prefill(kA) == 1);
  CHECK_FALSE(desk.posts(kA, WorkerRole::prefill).contains(held));
}

TEST_CASE("a shortage is shared within each class of workers") {
  Desk desk(6);
  desk.need(0, kA, 5, 10.0);
  desk.need(0, kB, 5, 10.0);
  desk.plan_at(500);
  CHECK(desk.prefill(kA) == 2);
  CHECK(desk.prefill(kB) == 2);
  CHECK(desk.posts(kA, WorkerRole::decode).size() == 1);
  CHECK(desk.posts(kB, WorkerRole::decode).size() == 1);
}

}  // namespace
}  // namespace sangam
