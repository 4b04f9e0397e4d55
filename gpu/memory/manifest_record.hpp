// What a pool's manifest says: which segments lie where, and which tables name them; and the same as bytes.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gpu/memory/slot_table.hpp"

namespace sangam {

struct ManifestSlot {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint32_t segment = 0;  ///< Its place in `ManifestRecord::segments`.

  bool operator==(const ManifestSlot&) const = default;
};

struct ManifestSegment {
  Digest digest;
  SegmentPlace place;

  bool operator==(const ManifestSegment&) const = default;
};

struct ManifestRecord {
  std::vector<ManifestSegment> segments;
  std::map<ModelId, std::vector<ManifestSlot>> tables;  ///< Slots in the order of their names.
  std::map<ModelId, std::string> notes;  ///< Of tables: what their writer wants to find again.

  bool operator==(const ManifestRecord&) const = default;
};

[[nodiscard]] ManifestRecord record_of(const std::map<ModelId, const SlotTable*>& tables);

/// Integers are little endian; lists and texts come after their length (32 bits).
[[nodiscard]] std::vector<std::byte> encoded(const ManifestRecord& record);
/// Of a record that is accepted, each slot names a segment of the record, of just the bytes that its type and
/// shape need.
[[nodiscard]] Result<ManifestRecord> decoded(std::span<const std::byte> bytes);

}  // namespace sangam
