// The memory of one CPU device: a memfd, mapped once and divided into pages that KV and weights share.
#pragma once

#include <memory>

#include "gpu/memory/free_pages.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

struct PagePoolOptions {
  Bytes size{};            ///< Rounded down to whole pages.
  Bytes page{256 * 1024};  ///< A multiple of the machine's own page.
};

/// Reserves its memory when it is made, so that no later write can fail. Whoever takes pages gives them back
/// before the pool ends.
class PagePool {
 public:
  static Result<std::unique_ptr<PagePool>> create(PagePoolOptions options);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  [[nodiscard]] FreePages& pages() { return pages_; }
  [[nodiscard]] const FreePages& pages() const { return pages_; }
  [[nodiscard]] PageArena arena() const { return arena_; }
  [[nodiscard]] Bytes page_bytes() const { return Bytes(std::int64_t(arena_.page_bytes)); }
  [[nodiscard]] Pages pages_for(Bytes bytes) const {
    return Pages((bytes.count() + page_bytes().count() - 1) / page_bytes().count());
  }
  [[nodiscard]] std::byte* address_of(PageId page) const {
    return arena_.base + std::size_t(page) * arena_.page_bytes;
  }

 private:
  PagePool(int file, PageArena arena, Pages total);

  int file_;
  PageArena arena_;
  FreePages pages_;
};

}  // namespace sangam
