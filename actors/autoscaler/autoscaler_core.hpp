// Decides twice a second how many workers each hot model has, which ones, and what each of them is for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "actors/autoscaler/budget.hpp"
#include "actors/autoscaler/sizing.hpp"
#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

struct AutoscalerOptions {
  ActorName name{"autoscaler"};
  std::uint64_t epoch = 0;  ///< Plans count on from here.
  SizingPolicy sizing = elasticity;
  BudgetRule budget = proportional;
  SizingOptions sizes;
  Millis period{500};
  /// Workers are added at once and taken away when none of the plans of so long has needed them. So a plan is never
  /// turned round by the next, which Janus's debouncing is for.
  Millis hold{10'000};
  Millis idle_to_zero{60'000};  ///< A model without requests for so long has no worker.
  Millis repeat{5'000};         ///< An unchanged plan is said again, should one have been lost.
  std::vector<ActorName> hearers{ActorName("lifecycle"), ActorName("placement")};
};

/// Models that no placement answers for are its own, on the workers that placement leaves. Owns nothing that it could
/// not learn again: who is where comes from the workers, what is needed from the oracle.
class AutoscalerCore {
 public:
  explicit AutoscalerCore(AutoscalerOptions options);

  void start(Instant now, Outbox& out);
  void on(const Forecast& forecast, Instant now, Outbox& out);
  void on(const QueueStatus& status, Instant now, Outbox& out);
  void on(const InstanceState& state, Instant now, Outbox& out);
  void on(const Telemetry& telemetry, Instant now, Outbox& out);
  void on(const Plan& plan, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

  [[nodiscard]] const Plan& plan() const { return plan_; }

 private:
  struct Post {
    ModelId model;
    WorkerRole role = WorkerRole::prefill;
    bool operator==(const Post&) const = default;
  };
  struct WorkerView {
    std::int64_t devices = 1;
    std::map<ModelId, Residency> models;  ///< That it can hold, and where an order has taken them or takes them.
    Micros prefill_ahead{0};
    std::int64_t live = 0;
  };
  struct ModelState {
    ModelForecast forecast;
    std::int64_t waiting = 0;
    std::int64_t running = 0;
    Instant used_at{};
    bool used = false;
    std::deque<std::pair<Instant, Need>> wanted;  ///< Within `hold`, the largest of later ones only.
    Need given;
    Need held;  ///< Posts of it.
  };

  void plan_anew(Instant now);
  [[nodiscard]] Need steadied(ModelState& model, Need need, Instant now) const;
  void share_out(const std::vector<ModelId>& models, std::int64_t workers);
  /// Keeps who is at his post, then fills up.
  void assign(const std::vector<ModelId>& models, const std::vector<ActorName>& workers);
  void trim(const ModelId& model, WorkerRole role, std::int64_t wanted);
  void fill(const ModelId& model, WorkerRole role, std::int64_t wanted, std::set<ActorName>& free);
  void post(const ActorName& worker, Post post);
  void release(const ActorName& worker);
  template <class Goes>
  void release_if(Goes goes);
  [[nodiscard]] std::int64_t& count(const Post& post);
  [[nodiscard]] Plan drafted() const;
  [[nodiscard]] std::vector<ActorName> sources_of(const ModelId& model, const ActorName& but) const;
  void say(Instant now, Outbox& out);

  AutoscalerOptions options_;
  std::map<ModelId, ModelState> models_;
  std::map<ActorName, WorkerView> workers_;
  std::map<ActorName, Post> posts_;
  std::uint64_t steady_epoch_ = 0;  ///< Of the placement's plan, and what is its:
  std::set<ModelId> steady_models_;
  std::set<ActorName> steady_workers_;
  Plan plan_;
  Instant said_at_{};
};

}  // namespace sangam
