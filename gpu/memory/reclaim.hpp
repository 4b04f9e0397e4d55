// Pages that could be had: what gives way when pages are short.
#pragma once

#include "messages/vocabulary/quantity.hpp"

namespace sangam {

/// Holds pages that it can do without, as a prefix cache or a model's spare pages do. Never those that live
/// requests need.
class Reclaimable {
 public:
  virtual ~Reclaimable() = default;
  /// That `reclaim` would give back now.
  [[nodiscard]] virtual Pages reclaimable() const = 0;
  /// Gives back so many if it has them, first those that it misses least. Returns how many it were.
  virtual Pages reclaim(Pages wanted) = 0;
};

}  // namespace sangam
