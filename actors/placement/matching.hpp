// Which bin of a new packing becomes which worker, so that as much as possible stays where it is.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sangam {

/// What a row and a column have in common; pairs that are not named have nothing.
struct Overlap {
  std::size_t row = 0;
  std::size_t column = 0;
  double weight = 0.0;  ///< > 0.
};

/// A column for each row, all different, with the largest sum of weights. `weights` has rows <= columns.
/// Hungarian method (Kuhn, 1955; shortest augmenting paths), O(rows^2 columns).
[[nodiscard]] std::vector<std::size_t> best_assignment(const std::vector<std::vector<double>>& weights);

/// A column for each of `rows`, all different; rows <= columns. Rows and columns that overlaps connect are matched
/// on their own: exactly where there are at most `exact_max` columns, else greedily by falling weight, which
/// reaches at least half of the largest sum. The rest takes the columns left, in order.
[[nodiscard]] std::vector<std::size_t> match(std::size_t rows, std::size_t columns, std::vector<Overlap> overlaps,
                                             std::size_t exact_max);

}  // namespace sangam
