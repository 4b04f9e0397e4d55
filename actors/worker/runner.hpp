// What a worker's core needs from whatever computes: the door between decisions and the engine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/request.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// What is known of a model that is active.
struct LoadedInstance {
  double prefill_tokens_per_second = 0.0;  ///< Measured.
  std::string weights_digest;
  std::string config_digest = {};  ///< Hex, of its config.json; empty: not known.
  std::vector<std::string> warnings = {};
};

/// Bytes of one model, as in InstanceState.
struct Footprint {
  Bytes weights{0};
  Bytes missing{0};
  Bytes own{0};
  Bytes host{0};
};

/// How far a request's first prefill came in one step; the last such report of a request is `done`.
struct PrefillRows {
  RequestId request{};
  Tokens rows{0};
  bool done = false;
};

struct StepOutcome {
  std::vector<TokensProduced> produced;
  std::vector<PrefillRows> prefills;
  Micros elapsed{0};  ///< Measured: the step's own duration.
};

/// What has been copied of prompts that other workers compute.
struct KvPulled {
  std::vector<RequestId> advanced;  ///< Of these something.
  bool more = false;                ///< Is final, and waits to be copied.
};

/// A model's way to another residency: begun, advanced piece by piece, ended or abandoned. One at a time.
struct Move {
  ModelId model;
  Residency target = Residency::active;
  std::vector<ActorName> sources;  ///< Workers to copy weights from; empty: the cheapest source.
};

/// One call at a time.
class Runner {
 public:
  virtual ~Runner() = default;

  /// What was odd about the memory that it was made on, for the log.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
  /// Models whose weights a former process has left on the device: these become active without a copy.
  [[nodiscard]] virtual std::vector<ModelId> adopted() const { return {}; }

  /// Reserves all that the move will need; `exhausted` where that cannot be had. A model that leaves the device
  /// has no live request. On failure all is as before.
  virtual Result<void> begin(const Move& move) = 0;
  /// A piece of the move, some milliseconds long while `others_wait`; true when the target is reached. On failure
  /// the move is over and all is as before it, but for what `take_demoted` tells.
  virtual Result<bool> advance(bool others_wait) = 0;
  /// Ends the move; all is as before it.
  virtual void abandon() = 0;
  /// Of the last move that reached its target.
  [[nodiscard]] virtual std::vector<Phase> phases() const = 0;
  /// Models that have become cold because others needed host memory, since the last call.
  [[nodiscard]] virtual std::vector<ModelId> take_demoted() = 0;
  /// Whether `model` could become active if these were not.
  [[nodiscard]] virtual bool would_fit(const ModelId& model, std::span<const ModelId> asleep) const = 0;
  [[nodiscard]] virtual Footprint footprint(const ModelId& model) const = 0;
  /// All but `worker`.
  [[nodiscard]] virtual WorkerMemory memory() const = 0;

  /// Of a model that is active.
  [[nodiscard]] virtual LoadedInstance instance(const ModelId& model) const = 0;
  /// What it is made of, of a model that is warm or active. All but `devices`.
  [[nodiscard]] virtual ModelTable table(const ModelId& model) const = 0;
  /// Tokens of it that would fit beside all weights that are loaded now.
  [[nodiscard]] virtual Tokens kv_capacity(const ModelId& model) const = 0;
  /// On success its tokens come out of `step`, the last with a finish. The request must not be live.
  virtual Result<void> add(const Run& run) = 0;
  /// As `add`, but nothing comes after the first token, whose keys and values stay for others until `let_go` or
  /// `cancel`.
  virtual Result<void> add_prefill(const Run& run) = 0;
  /// Prompts added so that have been let in since the last call, and that others can watch: all pages of such a prompt
  /// are known, and nothing of it is computed before the next `step`. All but attempt, model, from and incarnation.
  virtual std::vector<ReserveKv> take_begun() = 0;
  /// Where they lie, of `run` with its first token.
  [[nodiscard]] virtual Result<KvPlace> kv_place(const Run& run) const = 0;
  virtual void let_go(RequestId request) = 0;
  /// Sets pages aside for a run that is to be taken over, until that comes or they are dropped. The request must not
  /// be live. On failure all is as before.
  virtual Result<void> reserve_kv(const ReserveKv& wish) = 0;
  /// Copies what has become final of those; some milliseconds' worth while there is other work.
  virtual KvPulled pull_kv() = 0;
  /// Nothing where nothing is set aside.
  virtual void drop_kv(RequestId request) = 0;
  /// As `add`, with keys and values that are copied from another worker's pool, as far as they are not here. On failure
  /// nothing is set aside any more, and else all is as before.
  virtual Result<void> take_over(const HandOver& offered) = 0;
  /// Nothing more comes for this request.
  virtual void cancel(RequestId request) = 0;
  [[nodiscard]] virtual bool has_work() const = 0;
  [[nodiscard]] virtual StepOutcome step() = 0;
  /// All but `worker`.
  [[nodiscard]] virtual InstanceStatus status(const ModelId& model) const = 0;
};

}  // namespace sangam
