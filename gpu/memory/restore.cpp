// Proving segments, then claiming the pages of those that are used.
#include "gpu/memory/restore.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "gpu/device/parallel.hpp"

namespace sangam {
namespace {

/// A segment of the record, as far as it could be read.
struct Found {
  std::shared_ptr<const PageSpan> mapping;
  std::span<const std::byte> bytes;
  std::string why_not;  ///< Empty: proven.
  std::shared_ptr<const Segment> segment;
};

/// Whether the pages exist, and are just as many as the bytes need.
bool fits(const SegmentPlace& place, PagePool& pool) {
  const Bytes all = pool.page_bytes() * pool.pages().total().count();
  if (place.offset >= pool.page_bytes() || place.bytes > all) return false;
  Pages pages;
  for (const PageExtent& extent : place.pages) {
    const std::int64_t end = std::int64_t(extent.first) + extent.count.count();
    if (extent.count == Pages{0} || end > pool.pages().total().count()) return false;
    pages += extent.count;
  }
  return pages == (place.bytes == Bytes{0} ? Pages{0} : pool.pages_for(place.offset + place.bytes));
}

void open(Found& found, const SegmentPlace& place, PagePool& pool) {
  if (!fits(place, pool)) {
    found.why_not = "its place is not in this pool";
    return;
  }
  if (place.bytes == Bytes{0}) return;
  const std::byte* first = pool.address_of(place.pages[0].first);
  if (place.pages.size() > 1) {
    auto mapping = pool.device().map(place.pages, Access::read);
    if (!mapping) {
      found.why_not = mapping.error().context;
      return;
    }
    found.mapping = std::move(*mapping);
    first = found.mapping->bytes().data();
  }
  found.bytes = {first + place.offset.count(), std::size_t(place.bytes.count())};
}

/// Only the hash proves that the bytes are those that were written once.
void prove(std::vector<Found>& found, const ManifestRecord& record, SegmentStore& store) {
  const auto compare = [&](std::size_t i, std::span<const std::byte> bytes) {
    if (store.hash(bytes) != record.segments[i].digest) found[i].why_not = "its bytes have changed";
  };
  if (store.pool().device().host_access()) {
    for_each_index(found.size(), std::numeric_limits<std::size_t>::max(), [&](std::size_t i) {
      if (found[i].why_not.empty()) compare(i, found[i].bytes);
    });
    return;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i].why_not.empty()) continue;
    auto view = HostView::create(store.pool().device(), record.segments[i].place.bytes);
    const auto bytes = view ? view->read(found[i].bytes) : view.error();
    if (bytes) {
      compare(i, *bytes);
    } else {
      found[i].why_not = bytes.error().context;
    }
  }
}

/// Empty: all segments of the table are proven.
std::string why_lost(const std::vector<ManifestSlot>& slots, const std::vector<Found>& found) {
  for (const ManifestSlot& slot : slots) {
    if (!found[slot.segment].why_not.empty()) return slot.name + ": " + found[slot.segment].why_not;
  }
  return {};
}

/// Each page once.
std::vector<PageExtent> pages_of(const std::set<std::uint32_t>& segments, const ManifestRecord& record) {
  std::set<std::int64_t> pages;
  for (const std::uint32_t segment : segments) {
    for (const PageExtent& extent : record.segments[segment].place.pages) {
      for (std::int64_t i = 0; i < extent.count.count(); ++i) pages.insert(std::int64_t(extent.first) + i);
    }
  }
  std::vector<PageExtent> extents;
  for (const std::int64_t page : pages) {
    if (!extents.empty() && std::int64_t(extents.back().first) + extents.back().count.count() == page) {
      extents.back().count += Pages{1};
    } else {
      extents.push_back({PageId(page), Pages{1}});
    }
  }
  return extents;
}

SlotTable table_of(const std::vector<ManifestSlot>& slots, const std::vector<Found>& found) {
  SlotTable::Slots table;
  for (const ManifestSlot& slot : slots) {
    const auto& segment = found[slot.segment].segment;
    table.emplace(slot.name, TableSlot{{slot.dtype, slot.shape, segment->bytes()}, segment});
  }
  return SlotTable(std::move(table));
}

}  // namespace

RestoredTables restore(SegmentStore& store, const ManifestRecord& record) {
  PagePool& pool = store.pool();
  std::vector<Found> found(record.segments.size());
  for (std::size_t i = 0; i < found.size(); ++i) open(found[i], record.segments[i].place, pool);
  prove(found, record, store);

  RestoredTables restored;
  std::set<ModelId> whole;
  std::set<std::uint32_t> used;
  for (const auto& [model, slots] : record.tables) {
    if (const std::string why = why_lost(slots, found); !why.empty()) {
      restored.lost.push_back(model.text() + ": " + why);
      continue;
    }
    whole.insert(model);
    for (const ManifestSlot& slot : slots) used.insert(slot.segment);
  }
  auto pages = pool.reserve_exactly(pages_of(used, record));
  if (!pages) {
    for (const ModelId& model : whole) restored.lost.push_back(model.text() + ": " + pages.error().context);
    return restored;
  }
  const std::vector<PageExtent> held = std::move(*pages).commit_weights();
  for (const std::uint32_t i : used) {
    const ManifestSegment& segment = record.segments[i];
    found[i].segment = store.admit(std::make_shared<const Segment>(
        pool, segment.digest, segment.place, found[i].bytes, std::move(found[i].mapping)));
  }
  for (const PageExtent& extent : held) pool.drop_weights(extent);  // from now on the segments hold them
  for (const ModelId& model : whole) restored.tables.emplace(model, table_of(record.tables.at(model), found));
  return restored;
}

}  // namespace sangam
