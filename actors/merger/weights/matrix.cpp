// Sums run in double: the errors that matter are small beside the outputs.
#include "actors/merger/weights/matrix.hpp"

#include <bit>

#include "actors/merger/weights/eigen_views.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

double energy(const Eigen::MatrixXd& w, const Gram& gram) { return (w * view(gram)).cwiseProduct(w).sum(); }

}  // namespace

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
