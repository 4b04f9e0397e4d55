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
    end = fresh.offset + std::int64_t(fresh.source.size());
    bytes_ += Bytes(std::int64_t(fresh.source.size()));
    largest = std::max(largest, Bytes(std::int64_t(fresh.source.size())));
  }
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
    fresh.place = place_at(fresh.offset, Bytes(std::int64_t(fresh.source.size())));
    if (!fresh.source.empty()) fresh.bytes = {base + fresh.offset, fresh.source.size()};
  }
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

Result<void> SegmentLoad::copy(Bytes most) {
  SANGAM_ASSERT(!failed_ && is_proven(), "a load is proven before it is copied, and dropped when it failed", claims_.size());
  std::vector<CopyPiece> pieces;
  const std::size_t first = next_;
  std::size_t left = std::size_t(std::max(most, Bytes{1}).count());
  std::size_t total = 0;
  while (next_ < fresh_.size() && (left > 0 || fresh_[next_].source.empty())) {
    Fresh& fresh = fresh_[next_];
    if (is_witnessed_ && !fresh.witness) fresh.witness = std::make_unique<Witness>();
    const std::size_t end = std::min(offset_ + left, size_of(fresh.place));
    std::size_t at = 0;
    for (const std::span<std::byte> piece : pieces_of(fresh.place, pool_->arena())) {
      const std::size_t from = std::max(at, offset_);
      const std::size_t to = std::min(at + piece.size(), end);
      if (from < to) {
        pieces.push_back(
            {piece.data() + (from - at), fresh.source.data() + from, to - from, fresh.witness.get()});
      }
      at += piece.size();
    }
    left -= end - offset_;
    total += end - offset_;
    offset_ = end;
    if (end == size_of(fresh.place)) {
      ++next_;
      offset_ = 0;
    }
  }
  if (auto done = pool_->device().copy(pieces); !done) return failed(done.error());
  copied_ += Bytes(std::int64_t(total));
  return check(first, next_);
}

/// Without a witness each segment is read as its users will: through the mapping, if its pages are in pieces.
Result<void> SegmentLoad::check(std::size_t first, std::size_t end) {
  std::atomic<std::size_t> wrong{end};
  const auto compare = [&](std::size_t i, const Digest& found) {
    if (found != fresh_[i].digest) wrong = i;
  };
  if (is_witnessed_) {
    for (std::size_t i = first; i < end; ++i)
      compare(i, std::exchange(fresh_[i].witness, nullptr)->stream.digest());
  } else if (pool_->device().host_access()) {
    for_each_index(end - first, kHashThreads,
                   [&](std::size_t i) { compare(first + i, hash_(fresh_[first + i].bytes)); });
  } else {
    for (std::size_t i = first; i < end; ++i) {
      auto bytes = view_->read(fresh_[i].bytes);
      if (!bytes) return failed(bytes.error());
      compare(i, hash_(*bytes));
    }
  }
  if (wrong == end) return {};
  const Fresh& fresh = fresh_[wrong];
  return failed(
      make_error(ErrorCode::corrupt,
                 "weights: " + std::to_string(fresh.source.size()) + " bytes that should hash to " +
                     hex_of(fresh.digest) +
                     " do not after the copy: their source is damaged or was written to meanwhile; load "
                     "them again when it is complete"));
}

Result<void> SegmentLoad::failed(Error error) {
  failed_ = true;
  return error;
}

}  // namespace sangam
