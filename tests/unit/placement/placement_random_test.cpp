// Random worlds around the placement: whatever comes and goes, no plan asks a worker for more than it has. A failure
// prints the seed; the world of a seed is the same on every run.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/placement/placement_core.hpp"

namespace sangam {
namespace {

constexpr int kModels = 14;
constexpr int kWorkers = 6;
constexpr std::int64_t kPool = 1000;
const ActorName kLifecycle{"lifecycle"};

ActorName worker(std::uint64_t i) { return ActorName("worker/" + std::to_string(i)); }
ModelId model(std::uint64_t i) { return ModelId("m" + std::to_string(i)); }

/// Workers that carry plans out at once, and an oracle that changes its mind.
class World {
 public:
  World(std::uint64_t seed, PlacementPolicy policy) : random_(seed), core_(options(std::move(policy))) {
    for (std::uint64_t m = 0; m < kModels; ++m) {
      ModelTable& table = tables_[model(m)];
      table.model = model(m);
      table.segments = {{1'000 + m, Bytes(std::int64_t(20 + draw(100)))}, {m % 4, Bytes(100)}};  // Four families.
      forecasts_[model(m)] = forecast(m);
    }
    for (std::uint64_t w = 0; w < kWorkers; ++w) start(w);
    for (const auto& [id, table] : tables_) tell(table);
  }

  void step() {
    now_ += Millis(std::int64_t(500 + draw(2'000)));
    while (!timers_.empty()) {
      const auto [timer, due] = *std::min_element(timers_.begin(), timers_.end(),
                                                  [](const auto& a, const auto& b) { return a.second < b.second; });
      if (due > now_) break;
      timers_.erase(timer);
      core_.wake(timer, due, out_);
      collect();
    }
    const std::uint64_t what = draw(100);
    if (what < 70) {
      const std::uint64_t m = draw(kModels);
      forecasts_[model(m)] = forecast(m);
      Forecast all;
      for (const auto& [id, f] : forecasts_) all.models.push_back(f);
      tell(all);
    } else if (what < 80) {
      const std::uint64_t w = draw(kWorkers);
      up_.erase(worker(w));
      tell(ActorLost{worker(w), Incarnation{1}, "killed"});
    } else {
      start(draw(kWorkers));
    }
    carry_out();
  }

  int plans = 0;

 private:
  static PlacementOptions options(PlacementPolicy policy) {
    PlacementOptions options;
    options.tell = {kLifecycle};
    options.policy = std::move(policy);
    options.policy.kv_budget.reset();  // Pools are small here.
    options.pools.enter_dwell = Millis(1'000);
    options.search_effort = 20'000;
    return options;
  }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  double share() { return double(draw(1'000)) / 1'000.0; }
  ModelForecast forecast(std::uint64_t m) {
    ModelForecast f;
    f.model = model(m);
    f.requests_per_second = draw(8) == 0 ? 0.0 : 1.0;
    f.volatility = 1.0 + 5.0 * share();
    f.kv = Bytes(std::int64_t(draw(300)));
    f.compute = 0.6 * share();
    f.compute_deviation = 0.1 * share();
    f.bandwidth = 0.6 * share();
    return f;
  }
  template <class M>
  void tell(const M& message) {
    core_.on(message, now_, out_);
    collect();
  }
  void start(std::uint64_t w) {
    if (!up_.try_emplace(worker(w)).second) return;
    WorkerMemory memory;
    memory.worker = worker(w);
    memory.pool = Bytes(w % 3 == 2 ? kPool / 2 : kPool);
    tell(memory);
    Telemetry telemetry;
    telemetry.worker = worker(w);
    tell(telemetry);
    for (std::uint64_t m = 0; m < kModels; ++m) say_state(worker(w), model(m), Residency::cold);
  }
  void say_state(const ActorName& at, const ModelId& id, Residency residency) {
    InstanceState state;
    state.worker = at;
    state.model = id;
    state.incarnation = Incarnation{1};
    state.residency = state.target = residency;
    tell(state);
  }
  void collect() {
    for (const auto& alarm : out_.alarms) timers_[alarm.timer] = alarm.at;
    for (const auto& letter : out_.letters) {
      const Plan& said = std::get<Plan>(letter.message);
      CHECK(said.epoch > plan_.epoch);
      plan_ = said;
      ++plans;
      check_plan();
    }
    out_.clear();
  }
  /// What is reserved on each worker fits, counted anew from tables and ledger.
  void check_plan() {
    std::map<ActorName, std::set<ModelId>> planned;
    for (const auto& instance : plan_.instances) {
      CHECK(up_.contains(instance.worker));
      CHECK(planned[instance.worker].insert(instance.model).second);
    }
    CHECK(planned.size() == plan_.workers.size());
    CHECK(core_.ledger().size() == plan_.instances.size());
    for (const auto& [at, models] : planned) {
      CHECK(models.size() <= 4);
      std::map<std::uint64_t, Bytes> segments;
      Promised sum;
      for (const ModelId& id : models) {
        for (const SegmentSize& segment : tables_.at(id).segments) segments[segment.digest] = segment.bytes;
        for (const auto& [key, placed] : core_.ledger()) {
          if (key.model != id || placed.worker != at) continue;
          sum.kv += placed.reserved.kv;
          sum.compute += placed.reserved.compute;
          sum.bandwidth += placed.reserved.bandwidth;
        }
      }
      for (const auto& [digest, bytes] : segments) sum.kv += bytes;
      const bool is_small = at == worker(2) || at == worker(5);
      CHECK(sum.kv <= Bytes(is_small ? kPool / 2 : kPool));
      CHECK(sum.compute <= 1.0 + 1e-8);
      CHECK(sum.bandwidth <= 1.0 + 1e-8);
    }
  }
  void carry_out() {
    std::set<std::pair<ActorName, ModelId>> planned;
    for (const auto& instance : plan_.instances) planned.emplace(instance.worker, instance.model);
    for (auto& [at, active] : up_) {
      for (std::uint64_t m = 0; m < kModels; ++m) {
        const bool shall = planned.contains({at, model(m)});
        if (shall == active.contains(model(m)) || draw(3) == 0) continue;
        if (shall) active.insert(model(m));
        else active.erase(model(m));
        say_state(at, model(m), shall ? Residency::active : Residency::warm);
      }
    }
  }

  std::mt19937_64 random_;
  PlacementCore core_;
  Outbox out_;
  Instant now_{};
  Plan plan_;
  std::map<Timer, Instant> timers_;
  std::map<ModelId, ModelTable> tables_;
  std::map<ModelId, ModelForecast> forecasts_;
  std::map<ActorName, std::set<ModelId>> up_;  // Active models.
};

}  // namespace

TEST_CASE("whatever comes and goes, plans are feasible, have rising epochs and name living workers") {
  for (const char* name : {"potential", "first_fit_decreasing", "static", "periodic_repack", "periodic_balance"}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      CAPTURE(name);
      CAPTURE(seed);
      World world(seed, placement_policy(name).value());
      for (int i = 0; i < 200; ++i) world.step();
      CHECK(world.plans > 10);
    }
  }
}

}  // namespace sangam
