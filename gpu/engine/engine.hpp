// Serves several models from one pool of pages: continuous batching, one step of one model at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/engine/fair_turns.hpp"
#include "gpu/engine/roster.hpp"
#include "gpu/memory/page_pool.hpp"
#include "gpu/memory/segment_store.hpp"
#include "gpu/model/model.hpp"

namespace sangam {

/// Who may find whose prompts in the prefix cache. A shorter wait tells that someone has asked the same
/// before.
enum class PrefixSharing : std::uint8_t { nobody, tenant, everyone };

struct EngineOptions {
  std::int64_t running_max = 32;  ///< Sequences that hold pages at once, over all models.
  Tokens step_tokens{512};        ///< Rows of one step: a long prompt holds up running streams this much.
  PrefixSharing prefix_sharing = PrefixSharing::tenant;
  /// While several models have work, a step takes only as many rows of prompts as fit into this, by what
  /// `charge` has told; decodes and one row always. 0: up to `step_tokens`, whatever they cost.
  Micros shared_step_max{0};
};

/// A model that is ready to compute, and what it computes with.
struct LoadedModel {
  SlotTable weights;
  std::unique_ptr<Model> model;  ///< Reads `weights`; destroyed first.
  /// Equal where weights and configuration are, so that keys and values are too. They are kept under this
  /// name, beyond an unload; empty: they are not kept.
  std::string kv_name = {};
};

/// How far the first prefill of a request came in one step. One that is computed again after a preemption
/// before its end counts again.
struct PrefillProgress {
  RequestId request{};
  Tokens rows{};
  bool done = false;
};

/// What one step did. Both lists are in the order of rank; a request is in each at most once.
struct StepReport {
  std::vector<TokensProduced> produced;
  std::vector<PrefillProgress> prefills;
};

/// A model's work now, and counts since the engine's start.
struct EngineStats {
  RosterCount count;
  std::uint64_t steps = 0;
  Pages handing_over{};  ///< Held for other engines, or for requests that come from them.
  Pages kept{};          ///< Idle in the prefix cache, under the model's `kv_name`.
};

/// The tokens of a request depend on its own prompt, sampling and model only: not on who runs beside it, how
/// its prompt was cut into steps, whether it was preempted, what of it the prefix cache had, or with which of
/// its tokens it came here as `generated`. One thread at a time.
class Engine {
 public:
  /// `pool` outlives the engine. What its prefix cache keeps, and what its models have to spare, gives way to all
  /// who need pages of the pool.
  Engine(
      EngineOptions options, PagePool& pool,
      PrefixCache::Hash hash = [](std::span<const std::byte> bytes) { return digest_of(bytes); });
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Refused where the name is taken, a page cannot hold one token of it, or weights have left no page.
  Result<void> load(const ModelId& name, LoadedModel loaded);
  /// Refused while requests of it are live.
  Result<void> unload(const ModelId& name);

  /// Refused where it can never run; then nothing is reported for it. The request must not be live.
  Result<void> add(Run run);
  /// Its pages are available at once, and nothing more is reported; also of one that is being handed over or
  /// expected. False where it is not live.
  bool cancel(RequestId request);

  /// As `add`, but ends with the first token, for another engine to go on with. `sink`, which lives until
  /// `handed_over` or `cancel`, hears of all keys and values but the new token's. They stay where they are
  /// until then, also when the request has finished or failed. While the prompt is computed it is not
  /// preempted.
  Result<void> add_prefill(Run run, KvSink& sink);
  /// Lets in who can run, as the next step would: sinks hear which prompts begin, before these are computed.
  void let_in() { roster_.admit(); }
  /// The other engine has it all. False where nothing of it is held.
  bool handed_over(RequestId request);

  [[nodiscard]] Result<KvTerms> kv_terms(const ModelId& name) const;
  /// Pages, and a place among the running, for a request whose prompt another engine computes; the caller
  /// copies into them what that one tells, and must have stopped when it cancels. All or nothing. `exhausted` may
  /// pass; other errors will not.
  Result<std::span<const PageId>> reserve_kv(const KvWish& wish);
  /// Goes on with a request whose pages hold the keys and values of all its tokens, prompt and generated, but
  /// the last. Runs at once; otherwise as `add`. When it is refused, its pages stay reserved.
  Result<void> add_prefilled(Run run);

  /// That a step could do. Who waits for pages that are being handed over is no work.
  [[nodiscard]] bool has_work() const { return !completed_.empty() || (!roster_.empty() && !stalled_); }
  /// One model's step. While several have work they share the time as FairTurns promises.
  [[nodiscard]] StepReport step();
  /// How long the last step took. Where nobody tells, models have equal numbers of steps.
  void charge(Micros cost) { turns_.charge(last_rows_, cost); }

  [[nodiscard]] EngineStats stats(const ModelId& name) const;
  /// Tokens of this model that fit into the pages that weights have left; 0 where it is not loaded.
  [[nodiscard]] Tokens kv_capacity(const ModelId& name) const;

 private:
  struct Served {
    LoadedModel loaded;
    std::uint64_t steps = 0;
  };
  /// A sequence and how many of its tokens the step computes.
  struct Part {
    Sequence* sequence = nullptr;
    std::int64_t rows = 0;
    bool wants_logits = false;
  };

  [[nodiscard]] PrefixRealm realm_of(const Run& run, const LoadedModel& loaded) const;
  /// Refuses what can never run.
  [[nodiscard]] Result<Sequence> sequence_of(Run run);
  /// Waits from now on, or has all its tokens already.
  void accept(Sequence sequence);
  /// After every change of what is held for other engines.
  void settle();
  void admit(StepReport& report);
  [[nodiscard]] std::vector<ModelId> ready() const;
  [[nodiscard]] std::vector<Part> plan(const ModelId& name, std::int64_t rows_max);
  void compute(Served& served, const std::vector<Part>& parts);
  [[nodiscard]] static LayerDone teller(const std::vector<Part>& parts);
  void end(Sequence& sequence, FinishReason finish);
  void advance(const Part& part, std::span<float> logits, StepReport& report);
  [[nodiscard]] TokensProduced next_token(Sequence& sequence, std::span<float> logits);

  EngineOptions options_;
  PagePool& pool_;
  std::map<ModelId, Served> models_;
  KvPages kv_;
  KvHandOvers hand_overs_;
  Roster roster_;
  FairTurns turns_;
  std::int64_t last_rows_ = 0;             ///< Of the last step.
  bool stalled_ = false;                   ///< Everybody waits for pages that are being handed over.
  std::vector<TokensProduced> completed_;  ///< Came with all their tokens; told by the next step.
  std::vector<float> logits_;              ///< (slices that want logits, vocab_size)
};

}  // namespace sangam
