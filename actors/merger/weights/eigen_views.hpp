// The merger's matrices as Eigen sees them. For source files of this folder.
#pragma once

#include <Eigen/Core>

#include "actors/merger/weights/matrix.hpp"

namespace sangam::merging {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline Eigen::Map<const RowMajor> view(const DenseMatrix& m) { return {m.values.data(), m.rows, m.columns}; }
inline Eigen::Map<RowMajor> view(DenseMatrix& m) { return {m.values.data(), m.rows, m.columns}; }
inline Eigen::Map<const Eigen::MatrixXd> view(const Gram& g) { return {g.values.data(), g.columns, g.columns}; }

inline DenseMatrix dense(const Eigen::MatrixXd& m) {
  DenseMatrix out{m.rows(), m.cols(), std::vector<float>(std::size_t(m.size()))};
  view(out) = m.cast<float>();
  return out;
}

/// Scaled to a mean diagonal of one, with `damping` added to it: directions that calibration has not seen count a
/// little.
inline Eigen::MatrixXd damped(const Gram& gram, double damping) {
  Eigen::MatrixXd g = view(gram);
  const double mean = g.trace() / double(gram.columns);
  if (mean > 0.0) g /= mean;
  g.diagonal().array() += damping;
  return g;
}

}  // namespace sangam::merging
