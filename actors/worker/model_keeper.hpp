// What a worker holds of its models, and the orders that change it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/worker/runner.hpp"
#include "actors/worker/worker_options.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

/// The runs of a worker, as far as its models' coming and going concerns them.
class LiveRuns {
 public:
  virtual ~LiveRuns() = default;
  [[nodiscard]] virtual std::int64_t live(const ModelId& model) const = 0;
  /// Ends all of them, as cancelled or so that they go on elsewhere.
  virtual void end_all(const ModelId& model, AtDeadline how, Outbox& out) = 0;
};

/// One move at a time, in the order of the orders; a model that is to leave first takes no more runs and waits for
/// those it has. Each order is answered once, whatever becomes of it; one that comes again gets the same answer.
class ModelKeeper {
 public:
  ModelKeeper(const WorkerOptions& options, Runner& runner, LiveRuns& runs);

  void start(Outbox& out);
  void on(const Order& order, Instant now, Outbox& out);
  void on(const ActorFound& found, Outbox& out);
  void on(const ActorLost& lost);
  /// Ends drains whose time is up.
  void wake(Instant now, Outbox& out);
  static constexpr Timer kDrain{2};

  /// Whether runs of the model are taken; the reason where they are not.
  [[nodiscard]] Result<void> admission(const ModelId& model) const;
  [[nodiscard]] bool is_active(const ModelId& model) const;
  [[nodiscard]] Residency residency(const ModelId& model) const { return holdings_.at(model).residency; }
  [[nodiscard]] const std::set<ActorName>& gateways() const { return gateways_; }
  /// Who is here of those that hear what the worker does.
  [[nodiscard]] std::vector<ActorName> telemetry_hearers() const;
  /// Changes that are under way.
  [[nodiscard]] std::int64_t transfers() const;
  /// Bytes, since the start.
  [[nodiscard]] Bytes moved() const { return moved_; }

  void run_began(const ModelId& model, Outbox& out);
  void run_produced(const ModelId& model, Instant now);
  void run_ended(const ModelId& model, Outbox& out);

  [[nodiscard]] bool busy() const { return !moves_.empty(); }
  /// A piece of the present move.
  void step(bool others_wait, Outbox& out);
  /// To gateways, lifecycle and placement, where it has changed since the last call.
  void tell_memory(Outbox& out);

 private:
  struct OperationKey {
    std::uint64_t epoch = 0;
    std::uint64_t operation = 0;
    auto operator<=>(const OperationKey&) const = default;
  };
  /// The change of one model that is under way.
  struct Job {
    Residency target = Residency::active;
    std::vector<OperationKey> operations;  ///< Who is to be told; none where it was our own idea.
    std::vector<ActorName> sources;
    std::vector<ModelId> may_evict;
    std::vector<ModelId> evicted;
    std::optional<Instant> drain_until;
    AtDeadline at_deadline = AtDeadline::stay;
    bool begun = false;
  };
  struct Holding {
    Residency residency = Residency::cold;
    std::optional<Job> job;
    std::optional<Instant> last_token;
    std::optional<Error> failure;  ///< Of the last attempt to raise it.
    bool pinned = false;           ///< Remembered for the lifecycle.
  };

  [[nodiscard]] Result<void> objection(const Order& order, Instant now) const;
  [[nodiscard]] static std::optional<Error> reason_to_stay(const Holding& holding, const Order& order,
                                                           std::int64_t live, Instant now);
  void begin_job(const ModelId& model, Job job, Instant now, Outbox& out);
  void drop_job(const ModelId& model, Outbox& out);
  void finish(const ModelId& model, const Result<void>& result, Outbox& out);
  void note_demoted(Outbox& out);
  [[nodiscard]] bool make_room(const ModelId& model, Outbox& out);
  void queue_move(const ModelId& model);

  void answer(const OperationKey& key, OrderEnded ended, Outbox& out);
  [[nodiscard]] OrderEnded ended(const ModelId& model, const Result<void>& result) const;
  void announce(const ModelId& model, const ActorName& to, Outbox& out) const;
  void announce_to_all(const ModelId& model, Outbox& out) const;
  void tell_state(const ModelId& model, const ActorName& to, Outbox& out) const;
  void tell_state_to_all(const ModelId& model, Outbox& out) const;
  void tell_table(const ModelId& model, const ActorName& to, Outbox& out) const;
  void tell_table_to_all(const ModelId& model, Outbox& out) const;
  void take_role(WorkerRole role, Outbox& out);

  const WorkerOptions& options_;
  Runner& runner_;
  LiveRuns& runs_;
  std::map<ModelId, Holding> holdings_;
  std::deque<ModelId> moves_;
  std::set<ActorName> gateways_;
  bool scheduler_is_here_ = false;
  std::set<ActorName> planners_;  ///< Those that are here of lifecycle, oracle, placement and autoscaler.
  WorkerRole role_;
  Bytes moved_{0};
  std::uint64_t epoch_ = 0;  ///< The highest that has been seen.
  std::map<OperationKey, OrderEnded> answered_;
  std::deque<OperationKey> answered_order_;
  std::optional<WorkerMemory> told_memory_;
};

}  // namespace sangam
