// Keys and values on their way from worker to worker: a copy out of the pool of the one that has computed them.
//
// The taker reads and nobody writes into a pool that is not its own, so a worker that dies or restarts at any moment
// can spoil no other's memory. What is read is held against its digest: it may have changed under the reader.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/worker/worker_options.hpp"
#include "gpu/engine/engine.hpp"
#include "gpu/residency/kept_memory.hpp"

namespace sangam {

/// The runner's part in hand-overs, on either side. Pools of others stay mapped, one for each worker.
class KvExchange final : public KvSink {
 public:
  /// All outlive it. `isa` names the engine's kernels.
  KvExchange(const WorkerOptions& options, std::string_view isa, PagePool& pool, Engine& engine)
      : options_(options), isa_(isa), pool_(pool), engine_(engine) {}

  /// As the engine's `add_prefill`. Known from now on until `forget`.
  Result<void> add(const Run& run);
  void layer_done(const KvPart& part) override;
  [[nodiscard]] Result<KvPlace> place(const Run& run) const;
  void forget(RequestId request) { outgoing_.erase(request); }

  /// Takes pages, fills them, and goes on with the run; or nothing of it.
  Result<void> take_over(const HandOver& offered);

 private:
  struct Peer {
    Incarnation incarnation{};
    std::shared_ptr<const PeerPool> pool;
  };

  Result<std::shared_ptr<const PeerPool>> peer(const ActorName& worker, Incarnation incarnation);
  [[nodiscard]] Result<void> copy(const HandOver& offered, const PeerPool& from, std::span<const PageId> to) const;

  const WorkerOptions& options_;
  std::string isa_;
  PagePool& pool_;
  Engine& engine_;
  std::unordered_map<RequestId, std::vector<PageId>> outgoing_;
  std::map<ActorName, Peer> peers_;
};

}  // namespace sangam
