// Loading in two phases: plan what is new and reserve its pages; only then copy.
#include "gpu/memory/segment_store.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::int64_t kAlignment = 64;  // a cache line, and the width of the widest vector load
/// A tensor whose own extent would leave more than 1/8 of it unused shares an extent with its neighbours by
/// name. An extent is closed at this many pages, so that its unused tail is small and, of a model that goes,
/// little is kept by the few tensors that others still name.
constexpr std::int64_t kSharedPages = 8;

std::int64_t aligned(std::int64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// Pages that are given back with their last segment.
class Home {
 public:
  Home(FreePages& pages, PageExtent extent) : pages_(pages), extent_(extent) {}
  ~Home() { pages_.give_back(extent_); }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  [[nodiscard]] PageExtent extent() const { return extent_; }

 private:
  FreePages& pages_;
  PageExtent extent_;
};

}  // namespace

class Segment {
 public:
  Segment(std::shared_ptr<const Home> home, std::span<const std::byte> bytes)
      : home_(std::move(home)), bytes_(bytes) {}

  [[nodiscard]] const Home& home() const { return *home_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<const Home> home_;
  std::span<const std::byte> bytes_;
};

/// What a load will do. Nothing is changed by making one, and dropping it returns what it has reserved.
struct SegmentStore::Plan {
  struct Fresh {
    Digest digest;
    std::span<const std::byte> source;
    std::size_t extent = 0;
    std::int64_t offset = 0;
    std::shared_ptr<const Segment> segment;
  };
  struct Extent {
    std::int64_t bytes = 0;
    std::shared_ptr<const Home> home;
  };
  struct Use {
    std::shared_ptr<const Segment> resident;  ///< Or, if null:
    std::size_t fresh = 0;
  };

  std::vector<Use> uses;  ///< One a tensor.
  std::vector<Fresh> fresh;
  std::vector<Extent> extents;
};

Result<TensorView> SlotTable::find(std::string_view name) const {
  const auto slot = slots_.find(name);
  if (slot != slots_.end()) return slot->second.view;
  return make_error(ErrorCode::not_found, "weights: no tensor named " + std::string(name) + " among the " +
                                              std::to_string(slots_.size()) + " of this model");
}

SlotLookup SlotTable::lookup() const {
  return [this](std::string_view name) { return find(name); };
}

SegmentStore::SegmentStore(PagePool& pool, Hash hash) : pool_(pool), hash_(std::move(hash)) {}

std::shared_ptr<const Segment> SegmentStore::resident(const Digest& digest,
                                                      std::span<const std::byte> bytes) const {
  const auto [first, last] = segments_.equal_range(digest);
  for (auto entry = first; entry != last; ++entry) {
    if (auto segment = entry->second.lock(); segment && equal(segment->bytes(), bytes)) return segment;
  }
  return nullptr;
}

SegmentStore::Plan SegmentStore::plan(std::span<const NamedTensor> tensors) const {
  Plan plan;
  std::unordered_multimap<Digest, std::size_t> fresh_by_digest;
  std::size_t shared = 0;
  std::int64_t shared_end = 0;  // of extent `shared`; 0: none is open
  for (const NamedTensor& tensor : tensors) {
    const std::span bytes = tensor.view.bytes;
    const Digest digest = hash_(bytes);
    if (auto segment = resident(digest, bytes)) {
      plan.uses.push_back({std::move(segment), 0});
      continue;
    }
    const auto [first, last] = fresh_by_digest.equal_range(digest);
    const auto twin = std::find_if(
        first, last, [&](const auto& entry) { return equal(plan.fresh[entry.second].source, bytes); });
    plan.uses.push_back({nullptr, twin == last ? plan.fresh.size() : twin->second});
    if (twin != last) continue;

    fresh_by_digest.emplace(digest, plan.fresh.size());
    const std::int64_t size = std::max<std::int64_t>(std::int64_t(bytes.size()), 1);
    const std::int64_t own = pool_.pages_for(Bytes(size)).count() * pool_.page_bytes().count();
    if (own - size <= size / 8) {
      plan.fresh.push_back({digest, bytes, plan.extents.size(), 0, nullptr});
      plan.extents.push_back({size, nullptr});
      continue;
    }
    if (shared_end == 0) {
      shared = plan.extents.size();
      plan.extents.emplace_back();
    }
    plan.fresh.push_back({digest, bytes, shared, aligned(shared_end), nullptr});
    shared_end = plan.extents[shared].bytes = aligned(shared_end) + size;
    if (shared_end >= kSharedPages * pool_.page_bytes().count()) shared_end = 0;
  }
  return plan;
}

Result<void> SegmentStore::reserve(Plan& plan) const {
  FreePages& pages = pool_.pages();
  const FreePages before = pages;
  Pages needed;
  for (const Plan::Extent& extent : plan.extents) needed += pool_.pages_for(Bytes(extent.bytes));
  for (Plan::Extent& extent : plan.extents) {
    const Pages count = pool_.pages_for(Bytes(extent.bytes));
    const auto taken = pages.take_extent(count);
    if (!taken) {
      return make_error(
          ErrorCode::exhausted,
          "weights: pages needed=" + std::to_string(needed.count()) + " (one piece of " +
              std::to_string(count.count()) + "), free=" + std::to_string(before.free().count()) +
              " (largest piece " + std::to_string(before.largest_extent().count()) + ") of " +
              std::to_string(pages.total().count()) + ", page bytes=" +
              std::to_string(pool_.page_bytes().count()) + "; unload a model or make the pool larger");
    }
    extent.home = std::make_shared<const Home>(pages, *taken);
  }
  return {};
}

Result<void> SegmentStore::fill(const Plan& plan) const {
  for (const Plan::Fresh& fresh : plan.fresh) {
    const Home& home = *plan.extents[fresh.extent].home;
    std::byte* target = pool_.address_of(home.extent().first) + fresh.offset;
    if (!fresh.source.empty()) std::memcpy(target, fresh.source.data(), fresh.source.size());
    if (hash_({target, fresh.source.size()}) != fresh.digest) {
      return make_error(ErrorCode::corrupt,
                        "weights: the bytes changed while they were copied; another process is writing the "
                        "checkpoint: load it again when it is complete");
    }
  }
  return {};
}

Result<SlotTable> SegmentStore::load(std::span<const NamedTensor> tensors) {
  Plan plan = this->plan(tensors);
  if (auto reserved = reserve(plan); !reserved) return reserved.error();
  if (auto filled = fill(plan); !filled) return filled.error();

  std::erase_if(segments_, [](const auto& entry) { return entry.second.expired(); });
  for (Plan::Fresh& fresh : plan.fresh) {
    const auto& home = plan.extents[fresh.extent].home;
    const std::byte* first = pool_.address_of(home->extent().first) + fresh.offset;
    fresh.segment = std::make_shared<const Segment>(home, std::span(first, fresh.source.size()));
    segments_.emplace(fresh.digest, fresh.segment);
  }
  SlotTable table;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Plan::Use& use = plan.uses[i];
    const auto& segment = use.resident ? use.resident : plan.fresh[use.fresh].segment;
    const TensorView& source = tensors[i].view;
    const bool added = table.slots_
                           .emplace(tensors[i].name,
                                    SlotTable::Slot{{source.dtype, source.shape, segment->bytes()}, segment})
                           .second;
    SANGAM_ASSERT(added, "two tensors of one name", tensors[i].name);
    table.bytes_ += Bytes(std::int64_t(source.bytes.size()));
  }
  return table;
}

SegmentLedger SegmentStore::ledger() const {
  SegmentLedger ledger;
  std::set<const Home*> homes;
  for (const auto& [digest, entry] : segments_) {
    const auto segment = entry.lock();
    if (!segment) continue;
    ++ledger.segments;
    ledger.resident += Bytes(std::int64_t(segment->bytes().size()));
    if (homes.insert(&segment->home()).second) ledger.pages += segment->home().extent().count;
  }
  return ledger;
}

}  // namespace sangam
