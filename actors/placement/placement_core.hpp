// Janus's steady pool: which evenly used models share which workers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "actors/placement/board.hpp"
#include "actors/placement/ledger.hpp"
#include "actors/placement/placement_options.hpp"
#include "actors/placement/pools.hpp"
#include "actors/placement/weight_map.hpp"
#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// Plans when a model enters or leaves the steady pool or a worker is lost, and packs anew each interval. Same
/// events at the same instants, same plans. A plan names the workers that it needs, also those that the autoscaler
/// has: the steady pool goes first. Models that find no room are not in the plan: they are the autoscaler's.
class PlacementCore {
 public:
  explicit PlacementCore(PlacementOptions options);

  /// Before the first event: goes on from the last plan that was said.
  void restore(const Plan& last, Instant now);

  void on(const Forecast& forecast, Instant now, Outbox& out);
  void on(const ModelTable& table, Instant now, Outbox& out);
  void on(const InstanceState& state, Instant now, Outbox& out);
  void on(const WorkerMemory& memory, Instant now, Outbox& out);
  void on(const Telemetry& telemetry, Instant now, Outbox& out);
  void on(const Plan& plan, Instant now, Outbox& out);  ///< The autoscaler's.
  void on(const ActorFound& found, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] const Plan& last_plan() const { return plan_; }

 private:
  /// Who is to be placed and what departures have left behind, of one class of workers.
  struct Changes {
    std::vector<Candidate> arrivals;
    std::set<ActorName> damaged;
  };

  // What is known (placement_core.cpp).
  void begin(Instant now, Outbox& out);
  void expect_room(Instant now, Outbox& out);
  bool see_traffic(Instant now);
  [[nodiscard]] ModelTraffic traffic_of(const ModelForecast& forecast);
  [[nodiscard]] Promised reservation_for(const ModelForecast& forecast) const;
  [[nodiscard]] Promised reservation_of_instance(const ModelForecast& forecast) const;
  [[nodiscard]] std::uint32_t instances_wanted(const ModelId& model) const;
  void note_pools();
  [[nodiscard]] bool is_member(const ModelId& model) const;

  // What follows from it (decisions.cpp).
  void decide(Outbox& out);
  void consolidate(Instant now, Outbox& out);
  [[nodiscard]] std::map<std::int64_t, Changes> changes();
  [[nodiscard]] std::vector<Candidate> instances_of(const ModelForecast& forecast);
  void forget_the_unknown();
  void renew_reservations();
  [[nodiscard]] std::vector<Candidate> placed_in(std::int64_t devices);
  [[nodiscard]] std::map<ActorName, std::size_t> elastic_workers() const;
  void settle_class(std::int64_t devices, const Changes& changes, bool packs, Outbox& out);
  void insert_arrivals(Bins& bins, std::size_t first) const;
  void write_back(const Board& board, const Packing& packing, const std::vector<Candidate>& candidates);
  void note_without_room(const InstanceKey& key, Outbox& out);
  void say_plan(Outbox& out);
  void add_instances(std::int64_t devices, Plan& plan);

  PlacementOptions options_;
  SteadyPool pool_;
  WeightMap weights_;
  KnownWorkers hosts_;
  std::map<std::int64_t, Bytes> pools_;  // The largest of each class that has workers.
  std::map<ModelId, ModelForecast> forecasts_;
  std::map<ActorName, Plan> elastic_;  // By planner.
  Ledger ledger_;
  std::set<ModelId> without_room_;  // As was logged.
  Plan plan_;
  std::uint64_t epoch_;
  bool has_begun_ = false;
  bool has_settled_ = false;
  bool expects_room_ = false;
  bool has_lost_ = false;  // The last plan names a worker that is gone.
};

}  // namespace sangam
