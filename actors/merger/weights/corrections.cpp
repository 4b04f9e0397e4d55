// Corrections that need no codes: low rank, and a line for each row.
#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <cmath>

#include "actors/merger/weights/eigen_views.hpp"
#include "actors/merger/weights/encoder.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
struct LowRankParts::Decomposed {
  Eigen::MatrixXd left;     // (rows, values)
  Eigen::VectorXd values;   // Descending.
  Eigen::MatrixXd right;    // (values, columns), the inputs' square root taken out again.
};

LowRankParts::LowRankParts(const DenseMatrix& matrix, const Gram& gram) {
  SANGAM_ASSERT(matrix.columns == gram.columns, matrix.columns, gram.columns);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> inputs(damped(gram, kDamping));
  const Eigen::VectorXd lengths = inputs.eigenvalues().cwiseMax(1e-12).cwiseSqrt();
  const Eigen::MatrixXd root = inputs.eigenvectors() * lengths.asDiagonal() * inputs.eigenvectors().transpose();
  const Eigen::MatrixXd inverse =
      inputs.eigenvectors() * lengths.cwiseInverse().asDiagonal() * inputs.eigenvectors().transpose();
  const Eigen::BDCSVD<Eigen::MatrixXd> parts(view(matrix).cast<double>() * root, Eigen::ComputeThinU | Eigen::ComputeThinV);
  decomposed_ = std::make_unique<const Decomposed>(
      Decomposed{parts.matrixU(), parts.singularValues(), parts.matrixV().transpose() * inverse});
}

LowRankParts::LowRankParts(LowRankParts&&) noexcept = default;
LowRankParts& LowRankParts::operator=(LowRankParts&&) noexcept = default;
LowRankParts::~LowRankParts() = default;

LowRankMatrix LowRankParts::cut(std::int64_t rank) const {
  SANGAM_ASSERT(rank > 0, rank);
  const Eigen::Index kept = std::min<Eigen::Index>(rank, decomposed_->values.size());
  // Half of each singular value goes to either side: bf16 rounds both alike.
  const Eigen::VectorXd halves = decomposed_->values.head(kept).cwiseSqrt();
  LowRankMatrix out;
  out.up = rounded_to_bf16(dense(decomposed_->left.leftCols(kept) * halves.asDiagonal()));
  out.down = rounded_to_bf16(dense(halves.asDiagonal() * decomposed_->right.topRows(kept)));
  out.product = {out.up.rows, out.down.columns, std::vector<float>(std::size_t(out.up.rows * out.down.columns))};
  view(out.product) = view(out.up) * view(out.down);
  return out;
}

RowAffine row_affine(const DenseMatrix& matrix, const DenseMatrix& canonical, const Gram& gram) {
  const Eigen::MatrixXd g = damped(gram, kDamping);
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(gram.columns);
  const Eigen::VectorXd g_ones = g * ones;
  const double sums = ones.dot(g_ones);
  RowAffine out{{}, {}, canonical};
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    const Eigen::VectorXd c = view(canonical).row(r).transpose().cast<double>();
    const Eigen::VectorXd w = view(matrix).row(r).transpose().cast<double>();
    const Eigen::VectorXd g_c = g * c;
    // Normal equations of |w - s c - t 1|^2 in the metric of the inputs.
    const double cc = c.dot(g_c), c1 = ones.dot(g_c), cw = w.dot(g_c), w1 = w.dot(g_ones);
    const double determinant = cc * sums - c1 * c1;
    const bool regular = determinant > 1e-9 * cc * sums;
    const double scale = regular ? (cw * sums - w1 * c1) / determinant : 1.0;
    const double shift = regular ? (cc * w1 - c1 * cw) / determinant : 0.0;
    out.scale.push_back(float(scale));
    out.shift.push_back(float(shift));
    view(out.applied).row(r).array() = out.scale.back() * view(canonical).row(r).array() + out.shift.back();
  }
  return out;
}

}  // namespace sangam::merging
