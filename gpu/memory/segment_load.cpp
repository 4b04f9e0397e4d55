// Pages, places and pieces of a load.
#include "gpu/memory/segment_load.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "gpu/device/parallel.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::int64_t kAlignment = 64;  // a cache line, and the width of the widest vector load
constexpr std::size_t kHashThreads = 8;

std::int64_t aligned(std::int64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t size_of(const SegmentPlace& place) {
  return std::size_t(place.bytes.count());
}

}  // namespace

SegmentLoad::SegmentLoad(PagePool& pool, SegmentHash hash)
    : pool_(&pool), hash_(std::move(hash)), is_witnessed_(!hash_ && pool.device().host_access()) {
  if (!hash_) hash_ = [](std::span<const std::byte> bytes) { return digest_of(bytes); };
}

/// Segments lie one after the other in as few pages as hold them: less than one page a load is lost to
/// rounding.
Result<void> SegmentLoad::reserve() {
  mapping_.reset();
  pages_ = Reservation();
  reserved_ = fresh_.size();
  bytes_ = Bytes{0};
  std::int64_t end = 0;
  Bytes largest;
  for (Fresh& fresh : fresh_) {
    fresh.offset = aligned(end);
    end = fresh.offset + fresh.size.count();
    bytes_ += fresh.size;
    largest = std::max(largest, fresh.size);
  }
  absent_ = fresh_.size();
  auto pages = pool_->reserve_weights(pool_->pages_for(Bytes(end)));
  if (!pages) return pages.error();
  pages_ = std::move(*pages);
  const std::byte* base = nullptr;
  if (pages_.extents().size() > 1) {
    auto mapping = pool_->device().map(pages_.extents(), Access::read);
    if (!mapping) return mapping.error();
    mapping_ = std::move(*mapping);
    base = mapping_->bytes().data();
  } else if (!pages_.extents().empty()) {
    base = pool_->address_of(pages_.extents()[0].first);
  }
  if (!fresh_.empty()) {
    auto view = HostView::create(pool_->device(), largest);
    if (!view) return view.error();
    view_ = std::move(*view);
  }
  for (Fresh& fresh : fresh_) {
    fresh.place = place_at(fresh.offset, fresh.size);
    if (fresh.size > Bytes{0}) fresh.bytes = {base + fresh.offset, std::size_t(fresh.size.count())};
  }
  next_ = first_to_copy(0);
  return {};
}

SegmentPlace SegmentLoad::place_at(std::int64_t offset, Bytes bytes) const {
  SegmentPlace place{{}, Bytes{0}, bytes};
  if (bytes == Bytes{0}) return place;
  const std::int64_t page = pool_->page_bytes().count();
  std::int64_t first = offset / page;  // among the reserved pages
  std::int64_t left = (offset + bytes.count() - 1) / page - first + 1;
  place.offset = Bytes(offset % page);
  for (const PageExtent& extent : pages_.extents()) {
    if (left == 0) break;
    if (first >= extent.count.count()) {
      first -= extent.count.count();
      continue;
    }
    const std::int64_t count = std::min(left, extent.count.count() - first);
    place.pages.push_back({PageId(std::int64_t(extent.first) + first), Pages(count)});
    left -= count;
    first = 0;
  }
  return place;
}

void SegmentLoad::add_pieces(Fresh& fresh, std::size_t offset, std::span<const std::byte> bytes,
                             std::vector<CopyPiece>& pieces) {
  if (is_witnessed_ && !fresh.witness) fresh.witness = std::make_unique<Witness>();
  const std::size_t end = offset + bytes.size();
  std::size_t at = 0;
  for (const std::span<std::byte> piece : pieces_of(fresh.place, pool_->arena())) {
    const std::size_t from = std::max(at, offset);
    const std::size_t to = std::min(at + piece.size(), end);
    if (from < to) {
      pieces.push_back({piece.data() + (from - at), bytes.data() + (from - offset), to - from, fresh.witness.get()});
    }
    at += piece.size();
  }
}

std::size_t SegmentLoad::first_to_copy(std::size_t from) const {
  while (from < fresh_.size() && (fresh_[from].there || fresh_[from].is_awaited())) ++from;
  return from;
}

Result<void> SegmentLoad::copy(Bytes most) {
  SANGAM_ASSERT(!failed_ && is_proven(), "a load is proven before it is copied, and dropped when it failed", claims_.size());
  std::vector<CopyPiece> pieces;
  std::vector<std::size_t> whole;
  std::size_t left = std::size_t(std::max(most, Bytes{1}).count());
  std::size_t total = 0;
  while (next_ < fresh_.size() && (left > 0 || fresh_[next_].source.empty())) {
    Fresh& fresh = fresh_[next_];
    const std::size_t end = std::min(offset_ + left, size_of(fresh.place));
    add_pieces(fresh, offset_, fresh.source.subspan(offset_, end - offset_), pieces);
    left -= end - offset_;
    total += end - offset_;
    offset_ = end;
    if (end == size_of(fresh.place)) {
      whole.push_back(next_);
      next_ = first_to_copy(next_ + 1);
      offset_ = 0;
    }
  }
  if (auto done = pool_->device().copy(pieces); !done) return failed(done.error());
  copied_ += Bytes(std::int64_t(total));
  if (auto checked = check(whole); !checked) return failed(checked.error());
  return {};
}

std::vector<SegmentLoad::Awaited> SegmentLoad::awaited() const {
  std::vector<Awaited> awaited;
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    if (!fresh_[i].is_awaited()) continue;
    const auto names_it = [&](const Slot& slot) { return !slot.resident && slot.fresh == i; };
    awaited.push_back({i, fresh_[i].digest, fresh_[i].size, std::find_if(slots_.begin(), slots_.end(), names_it)->name});
  }
  return awaited;
}

Result<void> SegmentLoad::put(std::size_t index, Bytes offset, std::span<const std::byte> bytes) {
  SANGAM_ASSERT(!failed_ && is_proven(), "a load is proven before bytes come, and dropped when it failed",
                claims_.size());
  Fresh& fresh = fresh_.at(index);
  SANGAM_ASSERT(fresh.is_awaited(), index);
  if (offset == Bytes{0}) {
    fresh.arrived = 0;
    fresh.witness.reset();
  }
  if (std::size_t(offset.count()) != fresh.arrived || bytes.size() > size_of(fresh.place) - fresh.arrived) {
    return make_error(ErrorCode::corrupt, "weights: " + std::to_string(bytes.size()) + " bytes at " +
                                              std::to_string(offset.count()) + " of a segment of " +
                                              std::to_string(size_of(fresh.place)) + ", of which " +
                                              std::to_string(fresh.arrived) + " are there");
  }
  std::vector<CopyPiece> pieces;
  add_pieces(fresh, fresh.arrived, bytes, pieces);
  if (auto done = pool_->device().copy(pieces); !done) return failed(done.error());
  fresh.arrived += bytes.size();
  copied_ += Bytes(std::int64_t(bytes.size()));
  if (fresh.arrived < size_of(fresh.place)) return {};
  auto checked = check({index});
  if (checked || checked.error().code == ErrorCode::corrupt) {
    fresh.arrived = 0;
    return checked;
  }
  return failed(checked.error());
}

Result<void> SegmentLoad::supply(std::size_t index, std::span<const std::byte> source) {
  Fresh& fresh = fresh_.at(index);
  SANGAM_ASSERT(fresh.is_awaited() && offset_ == 0, index, offset_);
  if (source.size() != size_of(fresh.place)) {
    return make_error(ErrorCode::invalid_input, "weights: a source of " + std::to_string(source.size()) +
                                                    " bytes for a segment of " + std::to_string(size_of(fresh.place)));
  }
  fresh.arrived = 0;
  fresh.witness.reset();
  fresh.source = source;
  next_ = first_to_copy(0);
  return {};
}

/// Without a witness each segment is read as its users will: through the mapping, if its pages are in pieces.
Result<void> SegmentLoad::check(const std::vector<std::size_t>& whole) {
  const std::size_t none = fresh_.size();
  std::atomic<std::size_t> wrong{none};
  const auto compare = [&](std::size_t i, const Digest& found) {
    if (found != fresh_[i].digest) wrong = i;
  };
  if (is_witnessed_) {
    for (const std::size_t i : whole) compare(i, std::exchange(fresh_[i].witness, nullptr)->stream.digest());
  } else if (pool_->device().host_access()) {
    for_each_index(whole.size(), kHashThreads,
                   [&](std::size_t i) { compare(whole[i], hash_(fresh_[whole[i]].bytes)); });
  } else {
    for (const std::size_t i : whole) {
      auto bytes = view_->read(fresh_[i].bytes);
      if (!bytes) return bytes.error();
      compare(i, hash_(*bytes));
    }
  }
  if (wrong == none) {
    for (const std::size_t i : whole) fresh_[i].there = true;
    absent_ -= whole.size();
    return {};
  }
  const Fresh& fresh = fresh_[wrong];
  return make_error(ErrorCode::corrupt,
                    "weights: " + std::to_string(size_of(fresh.place)) + " bytes that should hash to " +
                        hex_of(fresh.digest) +
                        " do not after the copy: their source is damaged or was written to meanwhile; load "
                        "them again when it is complete");
}

Result<void> SegmentLoad::failed(Error error) {
  failed_ = true;
  return error;
}

}  // namespace sangam
