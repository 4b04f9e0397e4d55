// Which pages of a device are free: an ordered map that feeds KV from the low end and weights from the high.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "gpu/device/device.hpp"

namespace sangam {

/// Neighbouring free pages are always one extent, so equal sets of free pages are equal maps. KV lives at one
/// end and weights at the other: what is between them stays in one piece.
class FreePages {
 public:
  explicit FreePages(Pages total);

  /// Amortised O(1).
  [[nodiscard]] std::optional<PageId> take_lowest();

  /// The upper part of the smallest extent that fits; of equals, the highest. O(extents).
  [[nodiscard]] std::optional<PageExtent> take_extent(Pages count);

  /// Every page of it must have been taken. O(log extents).
  void give_back(PageExtent extent);

  [[nodiscard]] Pages total() const { return total_; }
  [[nodiscard]] Pages free() const { return free_; }
  [[nodiscard]] Pages largest_extent() const;

 private:
  using Number = std::int64_t;

  /// One past the last page of each free extent -> its first page: taking from the low end changes no key.
  std::map<Number, Number> first_by_end_;
  Pages total_;
  Pages free_;
};

}  // namespace sangam
