// A ring of slices of time; a slice that is older than the ring is long counts no more.
#include "actors/queue/drain_rate.hpp"

#include <algorithm>

namespace sangam {

DrainRate::Slice& DrainRate::slice(std::int64_t number) {
  Slice& found = slices_[std::size_t(number % kSlices)];
  if (found.number != number) found = {number, Tokens(0), Micros(0)};
  return found;
}

void DrainRate::advance(Instant now, bool backlog) {
  if (backlog) {
    const std::int64_t oldest = number_of(now) - kSlices + 1;
    for (std::int64_t n = std::max(number_of(last_), oldest); n <= number_of(now); ++n) {
      const Instant begin = std::max(last_, Instant(kSlice * n));
      const Instant end = std::min(now, Instant(kSlice * (n + 1)));
      slice(n).waited += end - begin;
    }
  }
  last_ = now;
}

void DrainRate::drained(Tokens tokens) {
  slice(number_of(last_)).tokens += tokens;
}

Millis DrainRate::time_for(Tokens tokens, Instant now) const {
  Tokens drained{0};
  Micros waited{0};
  for (const Slice& slice : slices_) {
    if (slice.number < 0 || slice.number <= number_of(now) - kSlices) continue;
    drained += slice.tokens;
    waited += slice.waited;
  }
  if (waited < kSeenMin || drained.count() == 0) return Millis(0);
  const double micros = double(tokens.count()) * double(waited.count()) / double(drained.count());
  return std::max(std::chrono::ceil<Millis>(std::chrono::duration<double, std::micro>(micros)), Millis(1));
}

}  // namespace sangam
