// How fast a backlog drains: what a truthful Retry-After is computed from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// Tokens completed while something waited, over the time that something waited, within the last half
/// minute. Idle time would make the rate too low, and what is dispatched into free slots without waiting
/// would make it too high; while something waits, every slot is taken and completions are the drain.
class DrainRate {
 public:
  /// To be called before each change of the backlog: books the time since the last call.
  void advance(Instant now, bool backlog);
  /// Tokens completed at the instant of the last advance(), while something waited.
  void drained(Tokens tokens);
  /// How long `tokens` take to drain; 0 where too little has been seen to tell.
  [[nodiscard]] Millis time_for(Tokens tokens, Instant now) const;

 private:
  static constexpr Micros kSlice = Seconds(2);
  static constexpr std::int64_t kSlices = 16;
  static constexpr Micros kSeenMin = Millis(500);

  struct Slice {
    std::int64_t number = -1;  ///< Since the clock's zero; says whether the slice is still in the window.
    Tokens tokens{0};
    Micros waited{0};
  };
  [[nodiscard]] static std::int64_t number_of(Instant at) { return at.time_since_epoch() / kSlice; }
  [[nodiscard]] Slice& slice(std::int64_t number);

  std::array<Slice, kSlices> slices_;
  Instant last_{};
};

}  // namespace sangam
