// Spans of time that come from elsewhere.
#pragma once

#include <algorithm>

#include "messages/vocabulary/time.hpp"

namespace sangam {

/// Times from the wire, kept where sums with an instant cannot overflow.
[[nodiscard]] inline Millis sane(Millis span) {
  constexpr Millis kYear = std::chrono::hours(24 * 365);
  return std::clamp(span, -kYear, kYear);
}

}  // namespace sangam
