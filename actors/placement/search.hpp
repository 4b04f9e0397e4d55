// Packs all items anew: greedy passes in several orders, then a search for a packing with a bin less.
#pragma once

#include <cstdint>

#include "actors/placement/packing.hpp"

namespace sangam {

/// No packing of the problem's items has fewer bins: the largest of the sums of each share, and the count over
/// `models_max`. Items that fit no bin are not counted.
[[nodiscard]] std::size_t bins_min(const PackingProblem& problem);

/// First fit, largest share first.
[[nodiscard]] Packing first_fit_decreasing(const PackingProblem& problem);

/// The least number of bins that is found with about `effort` evaluations of an item in a bin; the first greedy
/// pass is always completed. Decreasing orders by four measures of size, each under four fit rules; the best is
/// then improved as long as it is above bins_min: the emptiest bin is cleared, and what was in it finds room by
/// packing two to four bins at a time anew, in orders drawn by lot from a fixed seed (ruin and recreate;
/// Schrimpf et al., 2000). An item that fits no bin, or finds none left, is in none.
[[nodiscard]] Packing pack_anew(const PackingProblem& problem, std::uint64_t effort);

}  // namespace sangam
