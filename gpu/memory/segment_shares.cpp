// From segments to the tables that name them, and back.
#include "gpu/memory/segment_shares.hpp"

#include <set>

namespace sangam {

SegmentShares shares_of(const std::map<ModelId, const SlotTable*>& tables) {
  SegmentShares shares;
  std::map<const Segment*, std::set<ModelId>> users;
  for (const auto& [model, table] : tables) {
    shares.tables[model];
    for (const auto& [name, slot] : table->slots()) users[slot.segment.get()].insert(model);
  }
  for (const auto& [segment, models] : users) {
    const Bytes bytes = segment->place().bytes;
    shares.together += bytes;
    for (const ModelId& model : models) {
      TableShares& mine = shares.tables[model];
      shares.apart += bytes;
      mine.total += bytes;
      if (models.size() > 1) mine.shared += bytes;
      for (const ModelId& other : models) {
        if (other != model) mine.with[other] += bytes;
      }
    }
  }
  return shares;
}

}  // namespace sangam
