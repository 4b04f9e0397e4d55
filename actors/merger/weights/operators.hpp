// One canonical matrix for several: the merge operators.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "actors/merger/weights/matrix.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam::merging {

enum class MergeOperator : std::uint8_t {
  mean,             ///< fp32, in the order of the donors.
  weighted_mean,    ///< By the energy of each donor's inputs.
  regmean_diagonal, ///< As regmean, with the inputs' coordinates taken to be independent.
  regmean,          ///< (sum W_m G_m)(sum G_m)^-1 (Jin et al., 2023): least squares of all outputs.
  task_arithmetic,  ///< ancestor + lambda * sum of deltas (Ilharco et al., 2023).
  ties,             ///< Trimmed deltas, elected signs, mean of those that agree (Yadav et al., 2023).
  medoid,           ///< The donor that lies nearest to all others.
};

[[nodiscard]] std::string_view name_of(MergeOperator op);
/// The error lists the names.
[[nodiscard]] Result<MergeOperator> merge_operator_named(std::string_view name);

struct Donor {
  const DenseMatrix* weights = nullptr;
  const Gram* gram = nullptr;  ///< Of this donor's inputs; for the operators that weigh by them.
};

struct OperatorOptions {
  MergeOperator op = MergeOperator::regmean;
  double damping = kDamping;  ///< Of regmean.
  double lambda = 0.4;    ///< Of task arithmetic and TIES.
  double density = 0.2;   ///< Of TIES: the share of each delta that is kept.
};

/// All donors are of one shape. `ancestor`, of the same: for the operators that merge deltas; without one the call
/// is refused for them.
[[nodiscard]] Result<DenseMatrix> merged(std::span<const Donor> donors, const DenseMatrix* ancestor,
                                         const OperatorOptions& options);

}  // namespace sangam::merging
