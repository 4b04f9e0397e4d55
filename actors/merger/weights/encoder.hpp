// Matrices in fewer bits: codes whose error is made good by the columns that follow, and what remains as a low rank.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "actors/merger/weights/matrix.hpp"
#include "storage/coding/row_code.hpp"

namespace sangam::merging {

/// What the error of one column asks of the later ones, so that the outputs change least (GPTQ, Frantar et al.,
/// 2023): the upper Cholesky factor of the inverse of a slot's damped gram. One serves all codes of a slot.
class ErrorFeedback {
 public:
  explicit ErrorFeedback(const Gram& gram, double damping = kDamping);
  ErrorFeedback(ErrorFeedback&&) noexcept;
  ErrorFeedback& operator=(ErrorFeedback&&) noexcept;
  ~ErrorFeedback();

  [[nodiscard]] std::int64_t columns() const;
  /// (columns, columns), column-major.
  [[nodiscard]] const double* factor() const;

 private:
  struct Factor;
  std::unique_ptr<Factor> factor_;
};

/// A matrix as a kernel reads it: its bytes, and the weights that they stand for.
struct EncodedMatrix {
  std::vector<std::byte> bytes;  ///< rows * row_bytes(code, columns)
  DenseMatrix decoded;
};

/// Columns from left to right; the scale of each group is fitted to what earlier errors have made of it.
[[nodiscard]] EncodedMatrix encode(const DenseMatrix& matrix, RowCode code, const ErrorFeedback& feedback);

/// up (rows, rank) times down (rank, columns), both rounded to bf16.
struct LowRankMatrix {
  DenseMatrix up;
  DenseMatrix down;
  DenseMatrix product;
};

/// The truncated singular value decomposition of a matrix times the square root of its inputs' damped gram: of all
/// matrices of a rank, the one whose outputs are nearest to the matrix's. Decomposed once, cut at any rank.
class LowRankParts {
 public:
  LowRankParts(const DenseMatrix& matrix, const Gram& gram);
  LowRankParts(LowRankParts&&) noexcept;
  LowRankParts& operator=(LowRankParts&&) noexcept;
  ~LowRankParts();

  [[nodiscard]] LowRankMatrix cut(std::int64_t rank) const;

 private:
  struct Decomposed;
  std::unique_ptr<const Decomposed> decomposed_;
};

/// By rows: scale * canonical + shift on each input, least squares over the inputs of `gram`. `shift` multiplies the sum
/// of the inputs.
struct RowAffine {
  std::vector<float> scale;
  std::vector<float> shift;
  DenseMatrix applied;  ///< What canonical, scale and shift stand for.
};
[[nodiscard]] RowAffine row_affine(const DenseMatrix& matrix, const DenseMatrix& canonical, const Gram& gram);

}  // namespace sangam::merging
