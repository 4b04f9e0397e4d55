// Weights and the statistics of their inputs, as the merger computes with them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/checkpoint/tensor.hpp"

namespace sangam::merging {

/// (rows, columns), row-major.
struct DenseMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<float> values;

  bool operator==(const DenseMatrix&) const = default;
};

/// Beside a gram's mean diagonal of one: directions that calibration has hardly seen count so much.
inline constexpr double kDamping = 0.01;

/// Of the inputs that a slot saw on calibration tokens: the sum of x x^T, (columns, columns).
struct Gram {
  std::int64_t columns = 0;
  std::vector<double> values;
};

/// Of a tensor of one or two dimensions (one: a row), in fp32.
[[nodiscard]] DenseMatrix dense_of(const TensorView& view);
[[nodiscard]] bool is_finite(const DenseMatrix& matrix);

/// Adds the inputs `rows` (count, columns) to it; an empty gram becomes one of so many columns.
void add_inputs(Gram& gram, std::span<const float> rows, std::int64_t columns);

/// The energy of the outputs' error beside that of the outputs: |(W - V) X|^2 / |W X|^2, where X is what `gram`
/// was taken of. 0 where W itself gives no output.
[[nodiscard]] double output_error(const DenseMatrix& w, const DenseMatrix& v, const Gram& gram);

[[nodiscard]] DenseMatrix difference(const DenseMatrix& a, const DenseMatrix& b);
[[nodiscard]] DenseMatrix sum(const DenseMatrix& a, const DenseMatrix& b);

/// Rounded to the nearest bf16, ties to even, as a canonical is stored.
[[nodiscard]] DenseMatrix rounded_to_bf16(DenseMatrix matrix);

}  // namespace sangam::merging
