// A segment: the bytes of one weight in the pool, never changed, named by their content.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gpu/memory/page_pool.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {

/// Where bytes lie in a pool: in these pages in this order, `bytes` of them from `offset` in the first on.
struct SegmentPlace {
  std::vector<PageExtent> pages;
  Bytes offset{};
  Bytes bytes{};

  bool operator==(const SegmentPlace&) const = default;
};

/// The same as addresses in the arena, in the order of the bytes.
[[nodiscard]] std::vector<std::span<std::byte>> pieces_of(const SegmentPlace& place, PageArena arena);

/// Holds its pages, which it may share with neighbours. Ends on the thread of the pool.
class Segment {
 public:
  /// `bytes`: the place as one piece, in the arena or in `mapping`.
  Segment(PagePool& pool, const Digest& digest, SegmentPlace place, std::span<const std::byte> bytes,
          std::shared_ptr<const PageSpan> mapping);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] const Digest& digest() const { return digest_; }
  /// For transfers: the pages, in the order of the bytes.
  [[nodiscard]] const SegmentPlace& place() const { return place_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  PagePool& pool_;
  Digest digest_;
  SegmentPlace place_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const PageSpan> mapping_;
};

}  // namespace sangam
