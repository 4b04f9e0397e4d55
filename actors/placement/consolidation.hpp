// Whether to pack anew, and which worker each new bin becomes.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/placement/packing.hpp"
#include "actors/placement/policies.hpp"

namespace sangam {

struct ConsolidationTerms {
  double pools_per_worker_saved = 2.0;  ///< So many of the largest pools may be moved for a worker that is saved.
  std::uint64_t effort = 0;             ///< As in pack_anew.
  std::size_t exact_matching_max = 128;
};

/// HBM that has to be copied on the way, in shares of the largest pool: weights that are not on a worker already.
[[nodiscard]] double weights_moved(const PackingProblem& problem, const Packing& from, const Packing& to);

/// `target` with its bins renamed among bins of their kind, so that most weights stay where `present` has them.
[[nodiscard]] Packing named_like(const PackingProblem& problem, const Packing& target, const Packing& present,
                                 std::size_t exact_max);

/// The packing with bins emptied whose items all find room in others, those with the fewest weights first.
[[nodiscard]] Packing with_bins_emptied(const Bins& bins);

/// What to go over to; nothing if all should stay. Of a packing anew and one that only empties bins it is the one that
/// gains more. A policy that weighs moves goes over where the workers saved are
/// worth more than the bytes moved, or more items find room; another one always does.
[[nodiscard]] std::optional<Packing> consolidated(const Bins& now, const PlacementPolicy& policy,
                                                  const ConsolidationTerms& terms);

}  // namespace sangam
