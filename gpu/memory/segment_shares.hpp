// Who shares what: the bytes of each table, those that others have too, and all together.
#pragma once

#include <map>

#include "gpu/memory/slot_table.hpp"

namespace sangam {

/// A segment that several slots of a table name counts once.
struct TableShares {
  Bytes total{};
  Bytes shared{};                 ///< That at least one other table names too; the rest goes with this table.
  std::map<ModelId, Bytes> with;  ///< By the other table; a segment of three tables stands under both.

  bool operator==(const TableShares&) const = default;
};

struct SegmentShares {
  std::map<ModelId, TableShares> tables;
  Bytes together{};  ///< What lies in the pool for all of them.
  Bytes apart{};     ///< What they would take if each had its own.

  bool operator==(const SegmentShares&) const = default;
};

[[nodiscard]] SegmentShares shares_of(const std::map<ModelId, const SlotTable*>& tables);

}  // namespace sangam
