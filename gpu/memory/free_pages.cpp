// Bookkeeping of free pages; see the header for the order of taking.
#include "gpu/memory/free_pages.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {

FreePages::FreePages(Pages total) : total_(total), free_(total) {
  if (total > Pages{0}) first_by_end_.emplace(total.count(), 0);
}

std::optional<PageId> FreePages::take_lowest() {
  const auto lowest = first_by_end_.begin();
  if (lowest == first_by_end_.end()) return std::nullopt;
  const Number page = lowest->second++;
  if (lowest->second == lowest->first) first_by_end_.erase(lowest);
  free_ -= Pages{1};
  return PageId(page);
}

std::optional<PageExtent> FreePages::take_extent(Pages count) {
  SANGAM_ASSERT(count > Pages{0}, count);
  auto best = first_by_end_.end();
  Number best_length = 0;
  for (auto extent = first_by_end_.end(); extent != first_by_end_.begin();) {
    --extent;
    const Number length = extent->first - extent->second;
    if (length < count.count() || (best != first_by_end_.end() && length >= best_length)) continue;
    best = extent;
    best_length = length;
  }
  if (best == first_by_end_.end()) return std::nullopt;

  auto node = first_by_end_.extract(best);
  node.key() -= count.count();
  const Number first = node.key();
  if (node.mapped() < first) first_by_end_.insert(std::move(node));
  free_ -= count;
  return PageExtent{PageId(first), count};
}

void FreePages::give_back(PageExtent extent) {
  Number first = Number(extent.first);
  const Number end = first + extent.count.count();
  SANGAM_ASSERT(extent.count > Pages{0} && end <= total_.count(), first, end, total_);

  auto above = first_by_end_.lower_bound(first);
  if (above != first_by_end_.end() && above->first == first) {
    first = above->second;
    above = first_by_end_.erase(above);
  }
  SANGAM_ASSERT(above == first_by_end_.end() || above->second >= end, "given back twice", first, end);
  if (above != first_by_end_.end() && above->second == end) {
    above->second = first;
  } else {
    first_by_end_.emplace_hint(above, end, first);
  }
  free_ += extent.count;
}

Pages FreePages::largest_extent() const {
  Number largest = 0;
  for (const auto& [end, first] : first_by_end_) largest = std::max(largest, end - first);
  return Pages{largest};
}

}  // namespace sangam
