// Pages that could be had: what gives way when pages are short, and who first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "messages/vocabulary/quantity.hpp"

namespace sangam {

/// Holds pages that it can do without, as a prefix cache or a model's spare pages do. Never those that live
/// requests need.
class Reclaimable {
 public:
  virtual ~Reclaimable() = default;
  /// That `reclaim` would give back now.
  [[nodiscard]] virtual Pages reclaimable() const = 0;
  /// Gives back so many if it has them, first those that it misses least. Returns how many it were. Takes no
  /// page meanwhile.
  virtual Pages reclaim(Pages wanted) = 0;
};

/// What a policy sees of one that could give way.
struct ReclaimCandidate {
  Pages reclaimable{};
  bool idle = false;            ///< No live request holds a page of its model.
  std::uint64_t last_used = 0;  ///< When its model last took a page; higher is later.
};

/// The order of asking, as places in `candidates`.
using ReclaimPolicy = std::vector<std::size_t> (*)(std::span<const ReclaimCandidate> candidates);

/// Models without live requests first; among equals, who has taken no page for the longest time.
[[nodiscard]] std::vector<std::size_t> idle_first(std::span<const ReclaimCandidate> candidates);

}  // namespace sangam
