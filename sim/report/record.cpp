// Counting tokens on time.
#include "sim/report/record.hpp"

#include <algorithm>

namespace sangam::sim {

void LateTokens::add(Micros since_arrival, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i, ++seen_) on_time_ += since_arrival <= slo_.ttft + seen_ * slo_.tpot;
}

Tokens LateTokens::late(Tokens wanted, bool failed) const {
  return failed ? wanted : Tokens(std::max<std::int64_t>(0, wanted.count() - on_time_));
}

}  // namespace sangam::sim
