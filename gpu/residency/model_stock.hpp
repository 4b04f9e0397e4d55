// The models of one device: on it, in host memory, or on storage only, and their ways from one to the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/engine/engine.hpp"
#include "gpu/memory/segment_shares.hpp"
#include "gpu/residency/folder_reading.hpp"
#include "gpu/residency/host_segments.hpp"
#include "gpu/residency/kept_memory.hpp"
#include "gpu/residency/weights_pull.hpp"
#include "gpu/residency/weights_shelf.hpp"
#include "messages/vocabulary/lifecycle.hpp"

namespace sangam {

class Ops;

/// Bytes of one model.
struct ModelBytes {
  Bytes weights{};  ///< Of all its tensors; 0 as long as they have not been read.
  Bytes missing{};  ///< That making it active would add to the device.
  Bytes own{};      ///< On the device, of segments that nobody shares with it.
  Bytes host{};     ///< Of its copy in host memory.
};

/// One move at a time, piece by piece, so that the engine can compute between two pieces. What a move needs on the
/// device is reserved before the first byte is copied; one that fails or is abandoned leaves all as it was.
///
/// An active model keeps its copy in host memory as long as nobody needs the room: putting it to sleep again costs
/// nothing then. Who gives way is decided by GreedyDual-Size-Frequency (Cherkasova, 1998): what is used often and
/// costly to read again for its size stays.
class ModelStock {
 public:
  /// All outlive the stock.
  struct Parts {
    SegmentStore& segments;
    Engine& engine;
    Ops& ops;
    KeptMemory* kept = nullptr;  ///< Told what is active. Null: nobody is.
    WeightsShelf* shelf = nullptr;  ///< The same, for other hosts.
    /// Measures a model that is new here, in tokens a second; absent: the rate stays 0.
    std::function<double(Model&)> prefill_rate = {};
  };
  ModelStock(Parts parts, Bytes host_max);

  /// Cold from now on.
  void add(const ModelId& model, std::filesystem::path folder);

  /// Weights that a former process has left, proven: the model becomes active without a copy.
  void adopt(const ModelId& model, SlotTable table, NamedWeights weights);
  [[nodiscard]] bool is_adopted(const ModelId& model) const { return entries_.at(model).adopted.has_value(); }

  using Peers = std::vector<std::shared_ptr<const PeerWeights>>;

  /// The model is known, not there yet, and none is under way. A model that leaves has no live request. Without a
  /// copy in host memory, weights come from `peers`, by turns, as far as they have them, else from `pull`, which other
  /// hosts feed, else from storage.
  Result<void> begin(const ModelId& model, Residency target, Peers peers = {}, std::unique_ptr<WeightsPull> pull = nullptr);
  /// Moves about `most` bytes. True when the target is reached. After an error the move is over, and what turned out
  /// wrong is read anew by the next one: a copy in host memory that was, is gone (`take_demoted`). Where all that is
  /// missing is still under way from other hosts, it waits for it up to `wait`.
  Result<bool> advance(Bytes most, Millis wait = Millis(0));
  void abandon();

  /// "ask" (other hosts, what the model is), "read", "reserve" (and compare what is there already), "copy" (from host
  /// memory or storage), "fork" (from other workers as well), "keep" (to host memory) or "ready": what the next piece
  /// does.
  [[nodiscard]] std::string_view phase() const;
  /// By all moves so far.
  [[nodiscard]] Bytes moved() const { return moved_; }

  [[nodiscard]] Residency residency(const ModelId& model) const { return entries_.at(model).residency; }
  /// Of a model that is warm or active.
  [[nodiscard]] const Blueprint& blueprint(const ModelId& model) const { return *entries_.at(model).blueprint; }
  /// Whether `model` would find room on the device if these were not there. False before it has been read.
  [[nodiscard]] bool would_fit(const ModelId& model, std::span<const ModelId> asleep) const;
  [[nodiscard]] const ModelBytes& bytes(const ModelId& model) const;
  /// What the models on the device would take more if each had its segments for itself.
  [[nodiscard]] Bytes shared() const;
  [[nodiscard]] const HostSegments& host() const { return host_; }
  /// Those that have become cold because others needed host memory, since the last call.
  [[nodiscard]] std::vector<ModelId> take_demoted() { return std::exchange(demoted_, {}); }

 private:
  using HostCopy = std::vector<std::shared_ptr<const HostSegment>>;  ///< One a slot.
  struct Entry {
    std::filesystem::path folder;
    Residency residency = Residency::cold;
    std::optional<Blueprint> blueprint;
    /// While it is read, and after that if there was no room: the next try need not read it again.
    std::optional<FolderReading> reading;
    std::optional<SlotTable> table;  ///< While active.
    std::optional<std::pair<SlotTable, NamedWeights>> adopted;
    HostCopy host;                                       ///< Empty: none.
    double uses = 0.0;
    double priority = 0.0;  ///< Of the host copy.
  };
  enum class Stage : std::uint8_t { ask, read, reserve, prove, copy, keep, ready };
  struct Going {
    ModelId model;
    Residency target = Residency::active;
    Stage stage = Stage::read;
    Peers peers;
    std::unique_ptr<WeightsPull> pull;
    bool was_pulled = false;  ///< Other hosts have given a part of it.
    std::optional<SegmentLoad> load;
    HostCopy kept;
    std::size_t offset = 0;  ///< How much of the last one of `kept` is there.
  };

  Result<void> begin_rise(Entry& entry);
  Result<void> from_folder(Entry& entry);
  Result<void> advance_stage(Bytes most, Millis wait);
  Result<void> ask(Millis wait);
  Result<void> read(Bytes most);
  Result<void> reserve();
  Result<void> without_room(const Error& error);
  Result<void> prove(Bytes most);
  Result<void> copy(Bytes most, Millis wait);
  Result<void> fork(Bytes most, Millis wait);
  Result<void> supply_from_storage(const Error& why);
  Result<void> without_peers(Error error);
  Result<void> keep(Bytes most);
  Result<void> keep_next(const WantedSlot& slot);
  Result<void> make_ready();
  Result<void> publish(const ModelId& changed, const SlotTable* table);
  Result<void> open_folder(Entry& entry);
  [[nodiscard]] static bool is_read(const Entry& entry);
  void give_up(const Error& error);
  void arrive();

  [[nodiscard]] std::span<const std::byte> source_of(const Entry& entry, std::size_t slot) const;
  [[nodiscard]] std::vector<WantedSlot> with_sources(const Entry& entry) const;
  [[nodiscard]] bool make_host_room(const ModelId& but);
  void drop_host_copy(const ModelId& model, Entry& entry);
  void note_host_copy(Entry& entry);
  void changed();
  [[nodiscard]] const SegmentShares& shares() const;
  [[nodiscard]] std::set<Digest> digests_on_device(std::span<const ModelId> but) const;
  [[nodiscard]] ModelBytes measure(const ModelId& model, const Entry& entry) const;

  Parts parts_;
  HostSegments host_;
  std::map<ModelId, Entry> entries_;
  std::optional<Going> going_;
  Bytes moved_;
  double clock_ = 0.0;  ///< The priority of the last host copy that gave way.
  std::vector<ModelId> demoted_;
  mutable std::map<ModelId, ModelBytes> measured_;  ///< Since the last change, as the following.
  mutable std::optional<SegmentShares> shares_;
};

}  // namespace sangam
