// How the life cycle is set up, as read from the configuration.
#pragma once

#include <cstddef>
#include <set>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

struct LifecycleOptions {
  Incarnation incarnation{1};  ///< The epoch of all orders.
  Millis idle_sleep{0};        ///< An active model sleeps so long after its last token; 0: never.
  std::set<ModelId> pinned;    ///< Never asleep but by an operator's wish.
  /// Having become active, a model is not put to sleep for another one before this has passed.
  Millis dwell{1'000};
  /// A wanted model that finds no room waits so long before one with live requests is drained for it.
  Millis patience{5'000};
  Millis drain_for{30'000};         ///< What that one's live requests get to end; then they move elsewhere.
  Millis cool_down_first{2'000};    ///< After a load has failed; doubles with each failure,
  Millis cool_down_max{60'000};     ///< up to this.
  std::size_t commands_max = 256;   ///< Operators' wishes under way at once.
};

}  // namespace sangam
