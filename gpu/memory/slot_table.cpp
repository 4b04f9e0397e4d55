// Looking slots up, and describing them to others.
#include "gpu/memory/slot_table.hpp"

#include <utility>

namespace sangam {

SlotTable::SlotTable(Slots slots) : slots_(std::move(slots)) {
  for (const auto& [name, slot] : slots_) bytes_ += slot.segment->place().bytes;
}

Result<TensorView> SlotTable::find(std::string_view name) const {
  const auto slot = slots_.find(name);
  if (slot != slots_.end()) return slot->second.view;
  return make_error(ErrorCode::not_found, "weights: no tensor named " + std::string(name) + " among the " +
                                              std::to_string(slots_.size()) + " of this model");
}

SlotLookup SlotTable::lookup() const {
  return [this](std::string_view name) { return find(name); };
}

std::vector<WantedSlot> SlotTable::wanted() const {
  std::vector<WantedSlot> wanted;
  for (const auto& [name, slot] : slots_) {
    const Segment& segment = *slot.segment;
    wanted.push_back({name, slot.view.dtype, slot.view.shape, segment.place().bytes, segment.digest(), {}});
  }
  return wanted;
}

}  // namespace sangam
