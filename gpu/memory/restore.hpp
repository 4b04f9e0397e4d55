// A pool that outlived its process: which of its segments and tables can be used again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gpu/memory/manifest_record.hpp"
#include "gpu/memory/segment_store.hpp"

namespace sangam {

struct RestoredTables {
  std::map<ModelId, SlotTable> tables;
  std::vector<std::string> lost;  ///< Which tables are not there again, and why.
};

/// Hashes every segment that `record` names, in as many threads as there are cores where the host reads the
/// device's memory, and makes the tables whose segments are all proven resident in `store`. Before any page
/// of the pool is taken; what is not proven stays free.
[[nodiscard]] RestoredTables restore(SegmentStore& store, const ManifestRecord& record);

}  // namespace sangam
