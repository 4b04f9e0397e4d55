// A segment's hold on its pages, and its place as addresses.
#include "gpu/memory/segment.hpp"

#include <algorithm>
#include <utility>

namespace sangam {

std::vector<std::span<std::byte>> pieces_of(const SegmentPlace& place, PageArena arena) {
  std::vector<std::span<std::byte>> pieces;
  std::size_t offset = std::size_t(place.offset.count());
  std::size_t left = std::size_t(place.bytes.count());
  for (const PageExtent& extent : place.pages) {
    const std::size_t there = std::size_t(extent.count.count()) * arena.page_bytes - offset;
    pieces.emplace_back(arena.at(extent.first) + offset, std::min(left, there));
    left -= pieces.back().size();
    offset = 0;
  }
  return pieces;
}

Segment::Segment(PagePool& pool, const Digest& digest, SegmentPlace place, std::span<const std::byte> bytes,
                 std::shared_ptr<const PageSpan> mapping)
    : pool_(pool), digest_(digest), place_(std::move(place)), bytes_(bytes), mapping_(std::move(mapping)) {
  for (const PageExtent& extent : place_.pages) pool_.hold_weights(extent);
}

Segment::~Segment() {
  for (const PageExtent& extent : place_.pages) pool_.drop_weights(extent);
}

}  // namespace sangam
