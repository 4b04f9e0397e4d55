// One model's weights: slot name -> segment, with the slot's own type and shape.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/memory/segment.hpp"
#include "gpu/model/model.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam {

/// A slot that a table is to have: what it is, what its bytes hash to, and where they can be had.
struct WantedSlot {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  Bytes bytes{};
  Digest digest;
  /// Host memory, or another process's pages as `Device::import` shows them; empty where the segment is
  /// resident. Read until the load is complete.
  std::span<const std::byte> source;
  /// Without a source, not resident and not another slot's: its bytes are `put` once they have arrived.
  bool comes_later = false;
};

struct TableSlot {
  TensorView view;
  std::shared_ptr<const Segment> segment;
};

/// Keeps its segments resident. Ends on the thread of the pool, and before it.
class SlotTable {
 public:
  using Slots = std::map<std::string, TableSlot, std::less<>>;

  SlotTable() = default;
  explicit SlotTable(Slots slots);

  [[nodiscard]] Result<TensorView> find(std::string_view name) const;
  /// Valid while the table lives.
  [[nodiscard]] SlotLookup lookup() const;
  [[nodiscard]] const Slots& slots() const { return slots_; }
  /// Of all slots, shared or not.
  [[nodiscard]] Bytes bytes() const { return bytes_; }

  /// What another process needs to know to load the same table, but for the sources.
  [[nodiscard]] std::vector<WantedSlot> wanted() const;

 private:
  Slots slots_;
  Bytes bytes_;
};

}  // namespace sangam
