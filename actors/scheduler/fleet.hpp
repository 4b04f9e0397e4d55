// The workers, the instances they hold and the requests they run, as far as the scheduler has been told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "actors/scheduler/backlog.hpp"
#include "actors/scheduler/cost_model.hpp"
#include "actors/scheduler/prefill_line.hpp"
#include "messages/vocabulary/residency.hpp"

namespace sangam {

struct FleetOptions {
  Micros step_overhead{200};  ///< A prefill takes at least this.
  /// Prior for an instance that has not measured itself.
  double prefill_tokens_per_second = 2000.0;
  /// Output that a run is taken to need KV for, when more is allowed; the engine preempts when all run long.
  Tokens output_reserved{256};
};

/// One model on one worker.
struct Instance {
  Tokens kv_capacity{0};
  CostModel costs;
};

struct Worker {
  ActorName name;
  Incarnation incarnation{};
  WorkerRole role = WorkerRole::mixed;
  std::map<ModelIndex, Instance> instances;
  std::vector<PrefillCost> cost;  ///< By ModelIndex, for the policies; infinite where prompts of it are not taken.
  PrefillLine line;
  std::int64_t running = 0;
  std::int64_t running_max = 1;
  std::int64_t expected = 0;  ///< Runs that are likely to be handed over to it.
  std::size_t place = 0;      ///< In the order of names.
  double kv_used = 0.0;  ///< Share of the worker's pages that its runs may come to need.
  bool kv_spent = false;  ///< A run did not fit; none is given until one has ended.
  Micros floor_owed{0};   ///< Prefill time due to requests without a deadline.

  [[nodiscard]] bool has_seat() const { return !instances.empty() && running < running_max && !kv_spent; }
  /// And takes prompts of it.
  [[nodiscard]] bool holds(ModelIndex model) const {
    return model < cost.size() && cost[model].fixed < PrefillCost{}.fixed;
  }
  /// Of a job whose model it holds.
  [[nodiscard]] Micros length(const PrefillJob& job) const;
};

/// How far the run of a request has come.
struct RunState {
  Attempt attempt = 1;
  bool prefilled = false;
};

class Fleet {
 public:
  explicit Fleet(FleetOptions options) : options_(options) {}

  /// A worker under a new incarnation has forgotten its runs. False for an incarnation that is over.
  bool add(const InstanceReady& ready, ModelIndex model);
  /// The runs of the instance keep their seats until they end. False if it was not there.
  bool remove(const InstanceGone& gone, ModelIndex model);
  /// Forgets the worker and all that it ran; returns the models that it held.
  std::vector<ModelIndex> lose(const ActorName& worker);

  /// Whether the worker's pages hold one more run. An idle worker takes any: there is no better moment.
  [[nodiscard]] bool fits(const Worker& worker, const WaitingJob& job) const;
  /// Takes a seat, KV and a place in the line; returns the estimate of the prefill time.
  Micros start(Worker& worker, const WaitingJob& job, Instant now);
  /// For a job that goes to `giver`: workers that could go on with it, the one with the least predicted time per
  /// token (the fewest runs) first, then the one with the most KV left.
  [[nodiscard]] std::vector<ActorName> takers(const Worker& giver, const WaitingJob& job) const;
  /// The run is likely to go there.
  void expect(RequestId request, const ActorName& taker);
  void move(const RunMoved& moved, Instant now);
  void prefill_finished(const PrefillFinished& finished, ModelIndex model, Instant now);
  void end(RequestId request, Attempt attempt, Instant now);
  /// The run of this request, of whatever attempt, is not there or will not be heard of again.
  void forget(RequestId request, Instant now);
  /// All runs of the model whose prefill has not ended: their queue may not have passed them on.
  void forget_unfinished(ModelIndex model, Instant now);
  [[nodiscard]] std::optional<RunState> run_of(RequestId request) const;

  [[nodiscard]] bool is_held(ModelIndex model) const;
  [[nodiscard]] bool has(const ActorName& worker, ModelIndex model) const;
  /// How many workers take prompts of the model.
  [[nodiscard]] std::size_t takers_of_prompts(ModelIndex model) const;
  /// When the first instance of the model is free; max where there is none.
  [[nodiscard]] Instant first_free(ModelIndex model, Instant now) const;
  /// When the first token could be there, if the job were the next one; max where there is no instance.
  [[nodiscard]] Instant earliest_end(const PrefillJob& job, Instant now) const;
  /// The shortest prefill time over the model's instances; zero where there is none.
  [[nodiscard]] Micros shortest(const PrefillJob& job) const;

  /// That hold one of these models, in the order of their names: a decision costs what it concerns, not what there is.
  [[nodiscard]] std::vector<Worker*> holders_of(std::span<const ModelIndex> models) const;
  [[nodiscard]] const std::map<ActorName, Worker>& workers() const { return workers_; }

 private:
  struct Run {
    RunState state;
    ModelIndex model = 0;
    ActorName worker;
    Tokens tokens{0};
    Tokens kv_tokens{0};
    double kv = 0.0;  // Share of the worker's pages.
    std::optional<ActorName> taker = {};
  };

  [[nodiscard]] std::span<Worker* const> holders_of(ModelIndex model) const;
  void number();
  void no_longer_expected(const Run& run);
  void leave(std::map<ActorName, Worker>::iterator worker);
  [[nodiscard]] Tokens kv_need(const WaitingJob& job) const;
  [[nodiscard]] static double kv_share(const Worker& worker, ModelIndex model, Tokens need);
  void price(ModelIndex model);
  void release(std::unordered_map<RequestId, Run>::iterator place, Instant now);

  FleetOptions options_;
  std::map<ActorName, Worker> workers_;
  std::vector<std::vector<Worker*>> holders_;  // By ModelIndex, by name.
  std::unordered_map<RequestId, Run> runs_;
};

}  // namespace sangam
