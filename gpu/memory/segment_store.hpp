// Weights in the pool: immutable segments that are named by their content, so that equal bytes lie there
// once.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/memory/page_pool.hpp"
#include "gpu/model/model.hpp"
#include "storage/checkpoint/tensor.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {

/// A weight as it is stored somewhere else; the bytes are read during one call only.
struct NamedTensor {
  std::string name;
  TensorView view;
};

/// The bytes of one weight in the pool. Its pages are given back when no table names it any more.
class Segment;

/// One model's weights: slot name -> segment, with the slot's own type and shape.
class SlotTable {
 public:
  [[nodiscard]] Result<TensorView> find(std::string_view name) const;
  /// Valid while the table lives.
  [[nodiscard]] SlotLookup lookup() const;
  /// Of all slots, shared or not.
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  friend class SegmentStore;
  struct Slot {
    TensorView view;
    std::shared_ptr<const Segment> segment;
  };
  std::map<std::string, Slot, std::less<>> slots_;
  Bytes bytes_;
};

struct SegmentLedger {
  std::int64_t segments = 0;
  Bytes resident{};  ///< Of distinct segments.
  Pages pages{};     ///< That they occupy; what is left of the last page of an extent is lost to others.
};

/// Tables may outlive the store, but not the pool.
class SegmentStore {
 public:
  using Hash = std::function<Digest(std::span<const std::byte>)>;

  explicit SegmentStore(
      PagePool& pool, Hash hash = [](std::span<const std::byte> b) { return digest_of(b); });

  /// Copies what is not there yet. All or nothing: when pages are short, everything is as before and the
  /// error holds the numbers.
  Result<SlotTable> load(std::span<const NamedTensor> tensors);

  [[nodiscard]] SegmentLedger ledger() const;

 private:
  struct Plan;
  std::shared_ptr<const Segment> resident(const Digest& digest, std::span<const std::byte> bytes) const;
  Plan plan(std::span<const NamedTensor> tensors) const;
  Result<void> reserve(Plan& plan) const;
  Result<void> fill(const Plan& plan) const;

  PagePool& pool_;
  Hash hash_;
  /// Expired entries are dropped by the next load.
  std::unordered_multimap<Digest, std::weak_ptr<const Segment>> segments_;
};

}  // namespace sangam
