// Sums run in double: the errors that matter are small beside the outputs.
#include "actors/merger/weights/matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "actors/merger/weights/eigen_views.hpp"
#include "messages/vocabulary/assert.hpp"
#include "storage/checkpoint/widened.hpp"

namespace sangam::merging {
namespace {

double energy(const Eigen::MatrixXd& w, const Gram& gram) { return (w * view(gram)).cwiseProduct(w).sum(); }

}  // namespace

DenseMatrix dense_of(const TensorView& view) {
  const bool is_vector = view.shape.size() == 1;
  DenseMatrix out{is_vector ? 1 : view.shape.at(0), view.shape.at(is_vector ? 0 : 1), {}};
  const std::size_t step = bytes_of(view.dtype);
  out.values.reserve(view.bytes.size() / step);
  for (std::size_t at = 0; at < view.bytes.size(); at += step) out.values.push_back(widened(view.bytes.data() + at, view.dtype));
  return out;
}

bool is_finite(const DenseMatrix& matrix) {
  return std::all_of(matrix.values.begin(), matrix.values.end(), [](float value) { return std::isfinite(value); });
}

void add_inputs(Gram& gram, std::span<const float> rows, std::int64_t columns) {
  if (gram.values.empty()) gram = {columns, std::vector<double>(std::size_t(columns * columns), 0.0)};
  SANGAM_ASSERT(gram.columns == columns, gram.columns, columns);
  const Eigen::Map<const RowMajor> x(rows.data(), std::int64_t(rows.size()) / columns, columns);
  const Eigen::MatrixXd wide = x.cast<double>();
  Eigen::Map<Eigen::MatrixXd>(gram.values.data(), columns, columns).noalias() += wide.transpose() * wide;
}

double output_error(const DenseMatrix& w, const DenseMatrix& v, const Gram& gram) {
  SANGAM_ASSERT(w.columns == gram.columns && v.values.size() == w.values.size(), w.columns, gram.columns, v.values.size());
  const Eigen::MatrixXd all = view(w).cast<double>();
  const double whole = energy(all, gram);
  return whole > 0.0 ? energy(all - view(v).cast<double>(), gram) / whole : 0.0;
}

DenseMatrix difference(const DenseMatrix& a, const DenseMatrix& b) {
  DenseMatrix out = a;
  view(out) -= view(b);
  return out;
}

DenseMatrix sum(const DenseMatrix& a, const DenseMatrix& b) {
  DenseMatrix out = a;
  view(out) += view(b);
  return out;
}

DenseMatrix rounded_to_bf16(DenseMatrix matrix) {
  for (float& value : matrix.values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    value = std::bit_cast<float>((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
  }
  return matrix;
}

}  // namespace sangam::merging
