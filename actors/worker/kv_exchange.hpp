// Keys and values on their way from worker to worker: a copy out of the pool of the one that computes them.
//
// The taker reads and nobody writes into a pool that is not its own, so a worker that dies or restarts at any moment
// can spoil no other's memory. What becomes final is copied while the rest is computed, layer by layer; in the end all
// of it is held against its digest, since it may have changed under the reader.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/worker/kv_progress.hpp"
#include "actors/worker/runner.hpp"
#include "actors/worker/worker_options.hpp"
#include "gpu/engine/engine.hpp"
#include "gpu/residency/kept_memory.hpp"

namespace sangam {

/// The runner's part in hand-overs, on either side. Pools of others stay mapped, one for each worker.
class KvExchange final : public KvSink {
 public:
  /// All outlive it. `isa` names the engine's kernels.
  KvExchange(const WorkerOptions& options, std::string_view isa, PagePool& pool, Engine& engine)
      : options_(options), isa_(isa), pool_(pool), engine_(engine), board_(pool) {}

  // Of a run that others go on with.

  /// As the engine's `add_prefill`. Known from now on until `forget`.
  Result<void> add(const Run& run);
  void begins(RequestId request, std::span<const PageId> pages) override;
  void layer_done(const KvPart& part) override;
  /// As in Runner.
  std::vector<ReserveKv> take_begun();
  [[nodiscard]] Result<KvPlace> place(const Run& run) const;
  /// Before its pages are let go, so that what waits for pages finds this one's place free, too.
  void forget(RequestId request);

  // Of a run that comes from others.

  /// Takes pages for what will come; or nothing of it.
  Result<void> reserve(const ReserveKv& wish);
  /// Copies what is final and not here yet, about `most` bytes.
  KvPulled pull(Bytes most);
  /// Gives back what was reserved, if anything was.
  void drop(RequestId request);
  /// Copies what is missing, and goes on with the run; or nothing of it.
  Result<void> take_over(const HandOver& offered);

 private:
  struct Outgoing {
    ModelId model;
    std::int64_t tokens = 0;  ///< Whose keys and values there will be.
    std::vector<PageId> pages;
    std::optional<ProgressBoard::Place> progress;
  };
  struct Incoming {
    ReserveKv wish;
    std::shared_ptr<const PeerPool> from;
    std::vector<PageId> pages;
    std::vector<std::int64_t> copied;  ///< Of each layer, the positions that are here.
  };
  struct Peer {
    Incarnation incarnation{};
    std::shared_ptr<const PeerPool> pool;
  };

  [[nodiscard]] KvPlace place_of(const KvTerms& terms, std::span<const PageId> pages) const;
  Result<std::shared_ptr<const PeerPool>> peer(const ActorName& worker, Incarnation incarnation);
  /// How many bytes it were.
  std::int64_t copy(Incoming& incoming, std::int64_t layer, std::int64_t until) const;

  const WorkerOptions& options_;
  std::string isa_;
  PagePool& pool_;
  Engine& engine_;
  ProgressBoard board_;
  std::unordered_map<RequestId, Outgoing> outgoing_;
  std::vector<RequestId> begun_;  ///< Not told yet.
  std::map<RequestId, Incoming> incoming_;
  std::map<ActorName, Peer> peers_;
};

}  // namespace sangam
