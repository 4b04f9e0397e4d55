// Who is there: queues, workers and their instances, with the last state that each reported.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gateway/api/snapshot.hpp"
#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// State of one model over all its workers, as dashboards want it.
struct ModelState {
  std::int64_t instances = 0;
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  double kv_used = 0.0;  ///< 0 to 1, of the pages of all workers that hold the model.
  /// Never fall, whatever restarts.
  std::uint64_t preemptions = 0, prefix_queries = 0, prefix_hits = 0, self_decodes = 0;
  std::uint64_t refused = 0, expired = 0;
  std::optional<ModelForecast> forecast = {};  ///< The oracle's last; none where no oracle is here.
};

/// Bounded by the mesh's own members: one entry per actor and per (worker, model).
class MeshView {
 public:
  void found(const ActorName& actor);
  void lost(const ActorName& actor);
  void ready(const InstanceReady& instance);
  void gone(const InstanceGone& instance);
  void status(const InstanceStatus& status);
  void status(const QueueStatus& status);
  void state(const InstanceState& state);
  void forecast(const Forecast& forecast);
  /// The last one of each worker; an older one of the same life is dropped.
  void telemetry(const Telemetry& telemetry);
  void table(const ModelTable& table);
  void memory(const WorkerMemory& memory) { memories_[memory.worker] = memory; }

  [[nodiscard]] bool present(const ActorName& actor) const { return actors_.contains(actor); }
  [[nodiscard]] ModelState state_of(const ModelId& model) const;
  /// Whether a request for the model would run: its queue is there, and an instance or somebody to wake one.
  [[nodiscard]] bool can_run(const ModelId& model) const;
  /// "ready", "waking", "asleep" (warm or cold; a request wakes it), "failed" (it could not be loaded) or "waiting"
  /// (no worker has it).
  [[nodiscard]] std::string status_of(const ModelId& model) const;

  /// What workers that are here hold, by model and worker.
  [[nodiscard]] std::vector<InstanceState> instances() const;
  [[nodiscard]] std::vector<WorkerMemory> memories() const;
  [[nodiscard]] MeshSnapshot snapshot() const;

 private:
  /// Adds up a count that starts anew with its owner.
  struct Rising {
    std::uint64_t total = 0;
    std::uint64_t last = 0;
    void see(std::uint64_t now) {
      total += now >= last ? now - last : now;
      last = now;
    }
  };
  struct Instance {
    bool ready = false;
    InstanceStatus status;
    Rising preemptions, prefix_queries, prefix_hits, self_decodes;
  };
  struct Queue {
    QueueStatus status;
    Rising refused, expired;
  };
  static void retire(Instance& instance);

  std::set<ActorName> actors_;
  std::map<std::pair<ModelId, ActorName>, Instance> instances_;  ///< By model, then worker.
  std::map<ModelId, Queue> queues_;
  std::map<std::pair<ModelId, ActorName>, InstanceState> states_;
  std::map<ActorName, WorkerMemory> memories_;
  std::map<ActorName, Telemetry> telemetries_;
  std::map<ModelId, ModelShape> shapes_;
  std::map<ModelId, ModelForecast> forecasts_;
};

}  // namespace sangam
