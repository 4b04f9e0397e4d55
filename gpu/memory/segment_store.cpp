// Loading in two phases: plan what is new and reserve its pages; only then copy.
#include "gpu/memory/segment_store.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

#include "gpu/device/parallel.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::size_t kHashThreads = 8;
constexpr Bytes kAll{std::numeric_limits<std::int64_t>::max()};

}  // namespace

SegmentStore::SegmentStore(PagePool& pool, Hash hash) : pool_(pool), hash_(std::move(hash)) {}

bool SegmentStore::equal(std::span<const std::byte> a, std::span<const std::byte> b) const {
  if (a.size() != b.size()) return false;
  if (a.empty() || a.data() == b.data()) return true;
  const Bytes size{std::int64_t(a.size())};
  auto a_view = HostView::create(pool_.device(), size);
  auto b_view = HostView::create(pool_.device(), size);
  if (!a_view || !b_view) return false;  // not proven: they will lie there twice
  const auto a_bytes = a_view->read(a);
  const auto b_bytes = b_view->read(b);
  return a_bytes && b_bytes && std::memcmp(a_bytes->data(), b_bytes->data(), a.size()) == 0;
}

std::vector<std::shared_ptr<const Segment>> SegmentStore::residents(const Digest& digest, Bytes size) const {
  std::vector<std::shared_ptr<const Segment>> found;
  const auto [first, last] = segments_.equal_range(digest);
  for (auto entry = first; entry != last; ++entry) {
    auto segment = entry->second.lock();
    if (segment && segment->place().bytes == size) found.push_back(std::move(segment));
  }
  return found;
}

std::vector<Digest> SegmentStore::missing(std::span<const WantedSlot> slots) const {
  std::vector<Digest> missing;
  std::unordered_set<Digest> seen;
  for (const WantedSlot& slot : slots) {
    if (residents(slot.digest, slot.bytes).empty() && seen.insert(slot.digest).second)
      missing.push_back(slot.digest);
  }
  return missing;
}

Result<void> SegmentStore::plan(std::span<const WantedSlot> slots, SegmentLoad& load) const {
  for (const WantedSlot& wanted : slots) {
    SegmentLoad::Slot& slot = load.slots_.emplace_back();
    slot.name = wanted.name;
    slot.dtype = wanted.dtype;
    slot.shape = wanted.shape;
    auto there = residents(wanted.digest, wanted.bytes);
    const auto twin = load.fresh_like(wanted.digest, wanted.bytes, 0);
    if (wanted.source.empty() && (!there.empty() || twin)) {  // Its digest is all that we have of it.
      if (!there.empty()) slot.resident = std::move(there.front());
      if (twin) slot.fresh = *twin;
      continue;
    }
    const bool comes_later = wanted.comes_later && wanted.source.empty();
    if (!comes_later && Bytes(std::int64_t(wanted.source.size())) != wanted.bytes) {
      return make_error(ErrorCode::not_found,
                        "weights: slot " + wanted.name + " needs segment " + hex_of(wanted.digest) + " of " +
                            std::to_string(wanted.bytes.count()) +
                            " bytes, which is not resident, and its source has " +
                            std::to_string(wanted.source.size()) + "; name a source that has it");
    }
    if (twin && load.fresh_[*twin].is_awaited()) {
      load.fresh_[*twin].source = wanted.source;
      slot.fresh = *twin;
    } else if (there.empty() && !twin) {
      slot.fresh = load.add_fresh(wanted.digest, wanted.bytes, wanted.source);
    } else {
      load.claims_.push_back({load.slots_.size() - 1, wanted.digest, wanted.source, std::move(there), 0, 0});
    }
  }
  return {};
}

Result<SegmentLoad> SegmentStore::begin(std::span<const WantedSlot> slots) {
  SegmentLoad load(pool_, hash_);
  if (auto planned = plan(slots, load); !planned) return planned.error();
  if (auto reserved = load.reserve(); !reserved) return reserved.error();
  return load;
}

SlotTable SegmentStore::commit(SegmentLoad load) {
  SANGAM_ASSERT(load.complete(), load.copied(), load.bytes());
  std::erase_if(segments_, [](const auto& entry) { return entry.second.expired(); });
  const std::vector<PageExtent> pages = std::move(load.pages_).commit_weights();
  std::vector<std::shared_ptr<const Segment>> made;
  for (SegmentLoad::Fresh& fresh : load.fresh_) {
    const auto there = residents(fresh.digest, fresh.place.bytes);
    const auto twin = std::find_if(there.begin(), there.end(),
                                   [&](const auto& segment) { return equal(segment->bytes(), fresh.bytes); });
    auto segment = twin == there.end() ? nullptr : *twin;
    if (!segment) {
      segment = admit(std::make_shared<const Segment>(pool_, fresh.digest, std::move(fresh.place),
                                                      fresh.bytes, load.mapping_));
    }
    made.push_back(std::move(segment));
  }
  for (const PageExtent& extent : pages) pool_.drop_weights(extent);  // what no segment holds is free again

  SlotTable::Slots table;
  for (SegmentLoad::Slot& slot : load.slots_) {
    auto segment = slot.resident ? std::move(slot.resident) : made[slot.fresh];
    const TensorView view{slot.dtype, std::move(slot.shape), segment->bytes()};
    const bool added = table.emplace(slot.name, TableSlot{view, std::move(segment)}).second;
    SANGAM_ASSERT(added, "two tensors of one name", slot.name);
  }
  return SlotTable(std::move(table));
}

Result<SlotTable> SegmentStore::load(std::span<const NamedTensor> tensors) {
  std::vector<WantedSlot> slots;
  for (const NamedTensor& tensor : tensors) {
    const TensorView& view = tensor.view;
    slots.push_back(
        {tensor.name, view.dtype, view.shape, Bytes(std::int64_t(view.bytes.size())), {}, view.bytes});
  }
  for_each_index(slots.size(), kHashThreads,
                 [&](std::size_t i) { slots[i].digest = hash(slots[i].source); });
  auto load = begin(slots);
  if (!load) return load.error();
  while (!load->is_proven()) {
    if (auto proven = load->prove(kAll); !proven) return proven.error();
  }
  while (!load->complete()) {
    if (auto copied = load->copy(kAll); !copied) return copied.error();
  }
  return commit(std::move(*load));
}

std::shared_ptr<const Segment> SegmentStore::admit(std::shared_ptr<const Segment> segment) {
  segments_.emplace(segment->digest(), segment);
  return segment;
}

SegmentLedger SegmentStore::ledger() const {
  SegmentLedger ledger;
  for (const auto& [digest, entry] : segments_) {
    const auto segment = entry.lock();
    if (!segment) continue;
    ++ledger.segments;
    ledger.resident += segment->place().bytes;
  }
  ledger.pages = pool_.ledger().weights;
  return ledger;
}

}  // namespace sangam
