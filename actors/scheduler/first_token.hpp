// When the first token of a request is to be expected, from all that waits and runs now.
#pragma once

#include <optional>

#include "actors/scheduler/fleet.hpp"

namespace sangam {

/// A request as the order of service sees it. With a deadline in `prefill`, that decides, else the rank.
struct PlaceInLine {
  PrefillJob prefill;
  std::uint64_t rank = 0;
};

/// From now. Taken ahead of it: the prefills that workers have (EPDT); of its own model what waits with an earlier
/// deadline, or all with a deadline and what has a lower rank; of the other models on these workers likewise, but
/// without a deadline not more than its own model has, since models take turns. Work flows to what is free first;
/// what another model has ahead falls evenly on the workers that hold it. What will still come is left out. Nothing
/// where no worker takes prompts of the model. O(w m log n) for w workers with m models each.
[[nodiscard]] std::optional<Micros> first_token_in(const PlaceInLine& place, const Fleet& fleet, const Backlog& backlog,
                                                   Instant now);

}  // namespace sangam
