// Decides which waiting request goes to which worker, when, and which can no longer be on time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "actors/scheduler/backlog.hpp"
#include "actors/scheduler/first_token.hpp"
#include "actors/scheduler/fleet.hpp"
#include "actors/scheduler/policies.hpp"
#include "actors/scheduler/quotes.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

struct SchedulerOptions {
  DispatchPolicy policy = lst_imh;
  FleetOptions fleet;
  /// A worker gets its next prefill so long before it is expected to be free: the way there must not be idle
  /// time, and what is handed over cannot be planned better any more (Janus: 20 ms).
  Micros look_ahead{20'000};
  /// Of a worker's prefill time, for requests without a deadline while such wait.
  double floor_share = 0.05;
  /// A plan sees so many jobs with a deadline, the earliest of each model; and as many without.
  std::size_t plan_jobs_max = 2048;
  /// With more than `prompt_jobs_max` waiting, plans keep this distance, however dense the events come.
  Micros plan_interval{2'000};
  std::size_t prompt_jobs_max = 32;
  std::uint64_t seed = 0;  ///< For policies that draw lots.
  QuoteOptions quotes;
};

/// Owns the backlog of all models and what is known of the workers. Nothing of a plan is kept but what it
/// dispatches: the next event, or the timer, plans anew from the truth of that moment. A request is refused as
/// soon as no instance could make it even as its next one, and not before: what a plan leaves out may come
/// back when a prefill ends early, a request is cancelled or an instance appears.
class SchedulerCore {
 public:
  explicit SchedulerCore(SchedulerOptions options);

  void on(const Enqueued& enqueued, Instant now, Outbox& out);
  void on(const Withdrawn& withdrawn, Instant now, Outbox& out);
  void on(const InstanceReady& ready, Instant now, Outbox& out);
  void on(const InstanceGone& gone, Instant now, Outbox& out);
  void on(const PrefillFinished& finished, Instant now, Outbox& out);
  void on(const RunEnded& ended, Instant now, Outbox& out);
  void on(const RunMoved& moved, Instant now, Outbox& out);
  void on(const AskQuote& ask, Instant now, Outbox& out);
  /// A model whose queue is there is known, also while nobody holds it and nothing waits.
  void on(const ActorFound& found, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

  [[nodiscard]] const Fleet& fleet() const { return fleet_; }
  [[nodiscard]] std::size_t waiting() const { return backlog_.size(); }

 private:
  struct Model {
    ModelId id;
    ActorName queue;
    bool held = false;    ///< By a worker.
    bool wanted = false;  ///< As the lifecycle was told.
  };
  /// The workers that can take a request, and whether one of them can take it now.
  struct Openings {
    std::vector<Worker*> workers;
    std::vector<ModelIndex> models;       // That wait and are held by one of `workers`.
    std::vector<ModelIndex> models_now;   // By one that is free within the look-ahead.
  };

  ModelIndex index_of(const ModelId& model);
  void remeasure(ModelIndex model);
  /// Tells the lifecycle when requests begin to wait for a model that nobody holds, and when they do no longer.
  void note_want(ModelIndex model, Instant now, Outbox& out);
  void repeat_wants(Instant now, Outbox& out);

  /// Tells the queue when to expect the first token of a request that is about to wait, unless that is not known or
  /// it will not wait but be refused.
  void quote(const WaitingJob& job, Instant now, Outbox& out);
  /// Both into `quoted`: the interval, and whether it would be refused.
  void predict(const PlaceInLine& place, std::optional<Micros> predicted, Instant now, Quoted& quoted) const;

  /// Decides now, or a little later when the backlog is long and the last plan is fresh.
  void reconsider(Instant now, Outbox& out);
  void decide(Instant now, Outbox& out);
  void refuse_late(Instant now, Outbox& out);
  void refuse(const WaitingJob& job, Instant earliest_end, Instant now, Outbox& out);
  void pay_floor_shares(Instant now, Outbox& out);
  /// False if a worker turned out to have no room for the run it was meant to take: plan again without it.
  bool dispatch_plan(Instant now, Outbox& out);
  bool dispatch_row(Worker& worker, const std::vector<const WaitingJob*>& row, Instant now, Outbox& out);
  void dispatch(Worker& worker, const WaitingJob& job, Instant now, Outbox& out);

  [[nodiscard]] Openings openings(Instant now);
  [[nodiscard]] bool is_open(const Worker& worker, Instant now) const;
  [[nodiscard]] std::vector<ModelIndex> unhurried_models(const Worker& worker) const;
  [[nodiscard]] Instant next_occasion(Instant now) const;
  void set_alarm(Instant at, Outbox& out);

  SchedulerOptions options_;
  Fleet fleet_;
  Backlog backlog_;
  Quotes quotes_;
  std::vector<Model> models_;  // By ModelIndex.
  std::map<ModelId, ModelIndex> model_indices_;
  std::map<ActorName, ModelIndex> queues_;
  Instant planned_at_ = Instant::min();
  Instant alarm_at_ = Instant::max();  // max: none is set.
  bool repeats_wants_ = false;
};

}  // namespace sangam
