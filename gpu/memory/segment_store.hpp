// Weights in the pool: immutable segments that are named by their content, so that equal bytes lie there
// once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/memory/page_pool.hpp"
#include "gpu/memory/segment_load.hpp"
#include "gpu/memory/slot_table.hpp"

namespace sangam {

/// A weight as it is stored somewhere else; the bytes are read during one call only.
struct NamedTensor {
  std::string name;
  TensorView view;
};

struct SegmentLedger {
  std::int64_t segments = 0;
  Bytes resident{};  ///< Of distinct segments.
  Pages pages{};     ///< Of weights; what no segment covers is lost to rounding.
};

/// Tables may outlive the store, but not the pool. On the thread of the pool.
class SegmentStore {
 public:
  using Hash = SegmentHash;

  /// `hash` null: digest_of, of what is loaded in the same pass as the copy.
  explicit SegmentStore(PagePool& pool, Hash hash = nullptr);

  /// Copies what is not there yet. All or nothing: when pages are short, everything is as before and the
  /// error holds the numbers.
  Result<SlotTable> load(std::span<const NamedTensor> tensors);

  /// The digests whose segments are not resident: what a source will be asked for. Each once, in the order of
  /// the slots.
  [[nodiscard]] std::vector<Digest> missing(std::span<const WantedSlot> slots) const;
  /// Reserves all that the load will need if equal digests are of equal bytes. A slot that comes with its bytes
  /// shares a resident segment if the bytes are equal, too, which `prove` finds out. One without shares by digest and
  /// size what is resident or comes with another slot: that is checked against the digest before it is used, and a
  /// comparison would need bytes that are not here; who would send them knows no more of them than the digest. If
  /// there is nothing of the kind, its bytes come later, or the load is refused.
  Result<SegmentLoad> begin(std::span<const WantedSlot> slots);
  /// `load` is complete. What others have made resident since it began is shared.
  [[nodiscard]] SlotTable commit(SegmentLoad load);

  [[nodiscard]] SegmentLedger ledger() const;
  [[nodiscard]] PagePool& pool() { return pool_; }
  [[nodiscard]] Digest hash(std::span<const std::byte> bytes) const {
    return hash_ ? hash_(bytes) : digest_of(bytes);
  }

  /// Makes a segment known whose pages are weights and whose bytes are proven, as after a restart.
  std::shared_ptr<const Segment> admit(std::shared_ptr<const Segment> segment);

 private:
  /// Of this digest and size.
  [[nodiscard]] std::vector<std::shared_ptr<const Segment>> residents(const Digest& digest, Bytes size) const;
  [[nodiscard]] bool equal(std::span<const std::byte> a, std::span<const std::byte> b) const;
  Result<void> plan(std::span<const WantedSlot> slots, SegmentLoad& load) const;

  PagePool& pool_;
  Hash hash_;
  /// Expired entries are dropped by the next commit.
  std::unordered_multimap<Digest, std::weak_ptr<const Segment>> segments_;
};

}  // namespace sangam
