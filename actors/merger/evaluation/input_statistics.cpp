// The sums are the merger's: this only knows when they are due.
#include "actors/merger/evaluation/input_statistics.hpp"

#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {

void InputStatistics::linear(const Rows& x, std::span<const Projection> projections) {
  SANGAM_ASSERT(next_ < grams_.size(), next_, grams_.size());
  add_inputs(grams_[next_++], {x.values, std::size_t(x.count * x.width)}, x.width);
  ops_.linear(x, projections);
}

}  // namespace sangam::merging
