// Which models share which workers, when that is planned anew, and what a plan says.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/placement/placement_core.hpp"

namespace sangam {
namespace {

const ActorName kLifecycle{"lifecycle"};
const ActorName kAutoscaler{"autoscaler"};
constexpr std::int64_t kPool = 1000;

Instant at(std::int64_t millis) { return Instant(Millis(millis)); }

ActorName worker(int i) { return ActorName("worker/" + std::to_string(i)); }

ModelForecast forecast(const std::string& model, double compute, double bandwidth, std::int64_t kv = 10) {
  ModelForecast f;
  f.model = ModelId(model);
  f.requests_per_second = 1.0;
  f.input_tokens_per_second = 100.0 * compute;
  f.volatility = 1.0;
  f.kv = Bytes(kv);
  f.compute = compute;
  f.bandwidth = bandwidth;
  return f;
}

PlacementOptions quick_options() {
  PlacementOptions options;
  options.tell = {kLifecycle, kAutoscaler};
  options.epoch = 40;
  options.settle = Millis(1'000);
  options.pools.enter_dwell = Millis(0);
  options.pools.leave_dwell = Millis(0);
  return options;
}

/// The core, its workers and its timers, and the plan that it said last.
class Scene {
 public:
  explicit Scene(PlacementOptions options = quick_options()) : core(std::move(options)) {}

  template <class M>
  void tell(std::int64_t millis, const M& message) {
    run_timers(millis);
    core.on(message, at(millis), out);
    collect();
  }
  void run_timers(std::int64_t millis) {
    while (!timers_.empty()) {
      const auto next = std::min_element(timers_.begin(), timers_.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      if (next->second > at(millis)) return;
      const auto [timer, due] = *next;
      timers_.erase(next);
      core.wake(timer, due, out);
      collect();
    }
  }
  void add_worker(std::int64_t millis, int i, const std::vector<std::string>& models, std::int64_t devices = 1) {
    WorkerMemory memory;
    memory.worker = worker(i);
    memory.pool = Bytes(kPool);
    tell(millis, memory);
    Telemetry telemetry;
    telemetry.worker = worker(i);
    telemetry.devices = devices;
    tell(millis, telemetry);
    for (const std::string& model : models) say_state(millis, model, i, Residency::cold);
  }
  void say_state(std::int64_t millis, const std::string& model, int i, Residency residency) {
    InstanceState state;
    state.worker = worker(i);
    state.model = ModelId(model);
    state.incarnation = Incarnation{1};
    state.residency = state.target = residency;
    tell(millis, state);
  }
  void add_table(std::int64_t millis, const std::string& model, std::vector<SegmentSize> segments,
                 std::int64_t devices = 1) {
    ModelTable table;
    table.model = ModelId(model);
    table.devices = devices;
    table.segments = std::move(segments);
    tell(millis, table);
  }
  void lose(std::int64_t millis, int i) { tell(millis, ActorLost{worker(i), Incarnation{1}, "killed"}); }

  /// Model to worker, by the last plan.
  [[nodiscard]] std::map<std::string, std::string> places() const {
    std::map<std::string, std::string> places;
    for (const auto& instance : plan.instances) places[instance.model.text()] = instance.worker.text();
    return places;
  }
  [[nodiscard]] std::map<std::string, std::int64_t> steps() const {
    std::map<std::string, std::int64_t> steps;
    for (const auto& instance : plan.instances) steps[instance.model.text()] = instance.step;
    return steps;
  }

  PlacementCore core;
  Outbox out;
  Plan plan;
  int plans = 0;  ///< Said to the lifecycle so far.
  std::vector<ActorName> told;  ///< Of the last plan.

 private:
  void collect() {
    for (const auto& alarm : out.alarms) timers_[alarm.timer] = alarm.at;
    for (const auto& letter : out.letters) {
      const auto* said = std::get_if<Plan>(&letter.message);
      REQUIRE(said != nullptr);
      if (said->epoch != plan.epoch) told.clear();
      told.push_back(letter.to);
      plan = *said;
      if (letter.to == kLifecycle) ++plans;
    }
    out.clear();
  }

  std::map<Timer, Instant> timers_;
};

/// Three workers and models A, B, C with 100 bytes each of their own, of complementary demand.
Scene three_models(PlacementOptions options = quick_options()) {
  Scene scene(std::move(options));
  for (int i = 1; i <= 3; ++i) scene.add_worker(0, i, {"A", "B", "C", "D"});
  scene.add_table(0, "A", {{1, Bytes(100)}});
  scene.add_table(0, "B", {{2, Bytes(100)}});
  scene.add_table(0, "C", {{3, Bytes(100)}});
  scene.add_table(0, "D", {{4, Bytes(100)}});
  Forecast all;
  all.models = {forecast("A", 0.5, 0.1), forecast("B", 0.1, 0.5), forecast("C", 0.3, 0.3)};
  scene.tell(0, all);
  return scene;
}

}  // namespace

TEST_CASE("the first plan waits until the workers had time to speak, and has an epoch above the last") {
  Scene scene = three_models();
  scene.run_timers(999);
  CHECK(scene.plans == 0);
  scene.run_timers(1'000);
  CHECK(scene.plans == 1);
  CHECK(scene.plan.epoch == 41);
  CHECK(scene.plan.by == ActorName("placement"));
  CHECK(scene.told == std::vector{kLifecycle, kAutoscaler});
  CHECK(scene.plan.models == std::vector{ModelId("A"), ModelId("B"), ModelId("C")});
  CHECK(scene.plan.workers == std::vector{worker(1)});  // 0.9 and 0.9 of one worker.
  for (const auto& instance : scene.plan.instances) CHECK(instance.role == WorkerRole::mixed);
}

TEST_CASE("a plan is said each interval, and at once when a model enters or leaves the pool") {
  Scene scene = three_models();
  scene.run_timers(31'000);
  CHECK(scene.plans == 2);
  Forecast more;
  more.models = {forecast("A", 0.5, 0.1), forecast("B", 0.1, 0.5), forecast("C", 0.3, 0.3), forecast("D", 0.4, 0.4)};
  scene.tell(32'000, more);
  CHECK(scene.plans == 3);
  CHECK(scene.places()["D"] == "worker/2");
  more.models.back().compute = 0.9;  // Too large: the autoscaler's.
  scene.tell(33'000, more);
  CHECK(scene.plans == 4);
  CHECK(!scene.places().contains("D"));
  CHECK(scene.plan.workers == std::vector{worker(1)});
  scene.tell(33'500, more);
  CHECK(scene.plans == 4);
}

TEST_CASE("the models of a lost worker are placed anew at once") {
  Scene scene = three_models();
  scene.run_timers(1'000);
  scene.lose(5'000, 1);
  CHECK(scene.plans == 2);
  CHECK(scene.plan.workers == std::vector{worker(2)});
  CHECK(scene.plan.instances.size() == 3);
  scene.lose(6'000, 3);  // Holds nothing.
  CHECK(scene.plans == 2);
}

TEST_CASE("free workers are taken before elastic ones, and those before none") {
  Scene scene = three_models();
  Plan elastic;
  elastic.by = kAutoscaler;
  elastic.epoch = 1;
  elastic.workers = {worker(1), worker(2)};
  elastic.instances = {{ModelId("D"), worker(1), WorkerRole::mixed, {}, 0}};
  scene.tell(500, elastic);
  scene.run_timers(1'000);
  CHECK(scene.plan.workers == std::vector{worker(3)});
  scene.lose(2'000, 3);
  CHECK(scene.plan.workers == std::vector{worker(2)});  // It has no elastic instance, worker/1 has one.
  scene.lose(3'000, 2);
  CHECK(scene.plan.workers == std::vector{worker(1)});
  scene.lose(4'000, 1);
  CHECK(scene.plan.workers.empty());
  CHECK(scene.plan.models.empty());  // Without a place they are not the placement's.
  scene.add_worker(5'000, 4, {"A", "B", "C"});
  scene.run_timers(5'100);
  CHECK(scene.plan.workers == std::vector{worker(4)});
}

TEST_CASE("an older plan of the autoscaler is ignored") {
  Scene scene = three_models();
  Plan elastic;
  elastic.by = kAutoscaler;
  elastic.epoch = 2;
  elastic.workers = {worker(1)};
  scene.tell(500, elastic);
  elastic.epoch = 1;
  elastic.workers = {worker(2), worker(3)};
  scene.tell(600, elastic);
  scene.run_timers(1'000);
  CHECK(scene.plan.workers == std::vector{worker(2)});
}

TEST_CASE("a model goes only to workers of its class that know it") {
  Scene scene;
  scene.add_worker(0, 1, {"A"});
  scene.add_worker(0, 2, {"B"});
  scene.add_worker(0, 3, {"A", "B", "T"}, 4);
  scene.add_table(0, "A", {{1, Bytes(100)}});
  scene.add_table(0, "B", {{2, Bytes(100)}});
  scene.add_table(0, "T", {{3, Bytes(100)}}, 4);
  Forecast all;
  all.models = {forecast("A", 0.1, 0.1), forecast("B", 0.1, 0.1), forecast("T", 0.1, 0.1)};
  scene.tell(0, all);
  scene.run_timers(1'000);
  CHECK(scene.places() ==
        std::map<std::string, std::string>{{"A", "worker/1"}, {"B", "worker/2"}, {"T", "worker/3"}});
}

TEST_CASE("what departs gives back what was reserved, whatever is forecast by then") {
  Scene scene = three_models();
  scene.run_timers(1'000);
  const Ledger before = scene.core.ledger();
  Forecast more;
  more.models = {forecast("A", 0.4, 0.1), forecast("B", 0.1, 0.4), forecast("C", 0.2, 0.2), forecast("D", 0.1, 0.1)};
  scene.tell(2'000, more);
  REQUIRE(scene.core.ledger().size() == 4);
  CHECK(scene.core.ledger().at({ModelId("A"), 0}).reserved == before.at({ModelId("A"), 0}).reserved);
  more.models.back().compute = 0.9;
  scene.tell(3'000, more);
  REQUIRE(scene.core.ledger().size() == before.size());
  for (const auto& [key, placed] : before) {
    CHECK(scene.core.ledger().at(key).worker == placed.worker);
    CHECK(scene.core.ledger().at(key).reserved == placed.reserved);
  }
  scene.run_timers(31'000);  // Consolidation renews.
  CHECK(scene.core.ledger().at({ModelId("A"), 0}).reserved.compute == doctest::Approx(0.4));
}

TEST_CASE("a restarted placement goes on from the last plan") {
  Scene first = three_models();
  first.run_timers(1'000);
  first.lose(2'000, 1);
  REQUIRE(first.plan.workers == std::vector{worker(2)});

  PlacementOptions options = quick_options();
  options.pools.enter_dwell = Millis(10'000);
  Scene second(options);
  second.core.restore(first.plan, at(100'000));
  for (int i = 1; i <= 3; ++i) second.add_worker(100'000, i, {"A", "B", "C", "D"});
  for (const auto& [model, digest] : {std::pair{"A", 1}, std::pair{"B", 2}, std::pair{"C", 3}}) {
    second.add_table(100'000, model, {{std::uint64_t(digest), Bytes(100)}});
    second.say_state(100'000, model, 2, Residency::active);
  }
  Forecast all;
  all.models = {forecast("A", 0.5, 0.1), forecast("B", 0.1, 0.5), forecast("C", 0.3, 0.3)};
  second.tell(100'500, all);
  second.run_timers(101'000);
  CHECK(second.plan.epoch > first.plan.epoch);
  CHECK(second.places() == first.places());
  CHECK(second.steps() == std::map<std::string, std::int64_t>{{"A", 0}, {"B", 0}, {"C", 0}});
}

TEST_CASE("after a restart nothing moves before the oracle has spoken, and who is gone is replaced") {
  Scene first = three_models();
  first.run_timers(1'000);
  Plan last = first.plan;
  for (auto& instance : last.instances) {
    if (instance.model == ModelId("B")) instance.worker = worker(2);
    if (instance.model == ModelId("C")) instance.worker = worker(9);
  }
  Scene second;
  second.core.restore(last, at(0));
  for (int i = 1; i <= 3; ++i) second.add_worker(0, i, {"A", "B", "C"});
  for (const auto& [model, digest] : {std::pair{"A", 1}, std::pair{"B", 2}, std::pair{"C", 3}}) {
    second.add_table(0, model, {{std::uint64_t(digest), Bytes(100)}});
  }
  second.run_timers(1'000);
  CHECK(second.places() == std::map<std::string, std::string>{{"A", "worker/1"}, {"B", "worker/2"}});
  Forecast all;
  all.models = {forecast("A", 0.5, 0.1), forecast("B", 0.1, 0.5), forecast("C", 0.3, 0.3)};
  second.tell(2'000, all);
  second.run_timers(31'000);
  CHECK(second.places().contains("C"));
  CHECK(second.plan.workers.size() == 1);
}

TEST_CASE("whoever hears plans and appears anew is told the last one") {
  Scene scene = three_models();
  scene.run_timers(1'000);
  scene.tell(2'000, ActorFound{kLifecycle, Incarnation{2}});
  CHECK(scene.plans == 2);
  CHECK(scene.plan.epoch == 41);
  scene.tell(2'000, ActorFound{worker(1), Incarnation{2}});
  CHECK(scene.plans == 2);
}

TEST_CASE("each model has workers of its own under the static policy, and keeps them") {
  PlacementOptions options = quick_options();
  options.policy = static_policy();
  Scene scene = three_models(options);
  scene.add_worker(0, 4, {"A", "B", "C", "D"});
  Forecast all;
  all.models = {forecast("A", 1.5, 0.1), forecast("B", 0.1, 0.5)};
  scene.tell(500, all);
  scene.run_timers(1'000);
  const auto on_workers = [&](const char* model) {
    return std::count_if(scene.plan.instances.begin(), scene.plan.instances.end(),
                         [&](const auto& instance) { return instance.model == ModelId(model); });
  };
  CHECK(on_workers("A") == 2);
  CHECK(on_workers("B") == 1);
  CHECK(on_workers("C") == 1);
  CHECK(scene.plan.workers.size() == 4);
  const auto places = scene.places();
  all.models = {forecast("A", 0.1, 0.1), forecast("B", 0.1, 0.1)};
  scene.tell(2'000, all);
  scene.run_timers(31'000);
  CHECK(scene.places() == places);
  CHECK(on_workers("A") == 2);
}

TEST_CASE("a model has as many instances as the options say, each on another worker, also after one is lost") {
  PlacementOptions options = quick_options();
  options.policy = periodic_balance_policy();
  options.policy.kv_budget = Bytes(50);
  options.instances = {{ModelId("A"), 2}};
  Scene scene = three_models(options);
  const auto workers_of = [&](const char* model) {
    std::set<ActorName> workers;
    std::size_t instances = 0;
    for (const auto& instance : scene.plan.instances) {
      if (instance.model != ModelId(model)) continue;
      workers.insert(instance.worker);
      ++instances;
    }
    CHECK(workers.size() == instances);
    return workers;
  };
  scene.run_timers(1'000);
  CHECK(workers_of("A").size() == 2);
  CHECK(workers_of("B").size() == 1);
  const InstanceKey second{ModelId("A"), 1};
  CHECK(scene.core.ledger().at(second).reserved.rate == doctest::Approx(25.0));  // Half of 100 x 0.5 tokens a second.
  CHECK(scene.core.ledger().at(second).reserved.kv == Bytes(50));
  const ActorName first = *workers_of("A").begin();
  scene.tell(2'000, ActorLost{first, Incarnation{1}, "killed"});
  CHECK(workers_of("A").size() == 2);
  CHECK_FALSE(workers_of("A").contains(first));
}

TEST_CASE("sources of a model that comes are the workers where it is active") {
  Scene scene = three_models();
  scene.say_state(0, "A", 2, Residency::active);
  scene.say_state(0, "D", 2, Residency::active);
  scene.say_state(0, "A", 3, Residency::active);
  scene.run_timers(1'000);
  for (const auto& instance : scene.plan.instances) {
    if (instance.model == ModelId("A") && instance.step > 0) {
      CHECK(instance.sources == std::vector{worker(3), worker(2)});
    }
    if (instance.model == ModelId("B")) CHECK(instance.sources.empty());
  }
}

}  // namespace sangam
