// Which pages of a device are free: a bitmap that feeds KV from the low end and weights from the high.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/device/device.hpp"

namespace sangam {

/// One bit a page, and above 64 of them one bit that says whether any of them is set, up to a single word: a
/// page is taken or given back in a few instructions, without allocation. KV lives at one end and weights at
/// the other, so what is between them stays in one piece.
class FreePages {
 public:
  explicit FreePages(Pages total);

  /// O(log total), base 64.
  [[nodiscard]] std::optional<PageId> take_lowest();
  /// The upper part of the smallest run that fits; of equals, the highest. O(total / 64 + runs).
  [[nodiscard]] std::optional<PageExtent> take_extent(Pages count);
  /// The highest pages, wherever they lie, in the order of their numbers; empty: there are not so many.
  [[nodiscard]] std::vector<PageExtent> take_highest(Pages count);
  /// These pages; false, and nothing is taken, where one is not free.
  [[nodiscard]] bool take(PageExtent extent);

  /// Every page of it must have been taken. O(pages given back).
  void give_back(PageExtent extent);

  [[nodiscard]] bool is_free(PageId page) const;
  [[nodiscard]] Pages total() const { return total_; }
  [[nodiscard]] Pages free() const { return free_; }
  /// O(total / 64 + runs).
  [[nodiscard]] Pages largest_extent() const;

 private:
  using Word = std::uint64_t;
  using Number = std::int64_t;

  void set(Number page);
  void clear(Number page);
  /// The highest run of free pages that ends at or before `end`; none: count 0.
  [[nodiscard]] PageExtent run_below(Number end) const;
  /// The highest page below `end` that is free (or taken); -1: none.
  [[nodiscard]] Number last_below(Number end, bool free) const;

  std::vector<std::vector<Word>> levels_;  ///< [0]: a bit a page; the last: one word.
  Pages total_;
  Pages free_;
};

}  // namespace sangam
