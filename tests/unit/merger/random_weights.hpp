// Random weights and inputs for tests of the merger.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "actors/merger/weights/matrix.hpp"

namespace sangam::merging {

/// Of a unit normal times `scale`; the generator alone decides, on every platform.
inline DenseMatrix random_matrix(std::int64_t rows, std::int64_t columns, std::mt19937_64& random, double scale = 1.0) {
  DenseMatrix out{rows, columns, {}};
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const double u = (double(random() >> 11) + 0.5) * 0x1p-53;
    const double v = (double(random() >> 11) + 0.5) * 0x1p-53;
    out.values.push_back(float(scale * std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v)));
  }
  return out;
}

/// x x^T summed over the rows of `inputs`, without help.
inline Gram gram_of(const DenseMatrix& inputs) {
  Gram gram{inputs.columns, std::vector<double>(std::size_t(inputs.columns * inputs.columns), 0.0)};
  for (std::int64_t r = 0; r < inputs.rows; ++r) {
    const float* x = inputs.values.data() + r * inputs.columns;
    for (std::int64_t i = 0; i < inputs.columns; ++i) {
      for (std::int64_t j = 0; j < inputs.columns; ++j) gram.values[std::size_t(i * inputs.columns + j)] += double(x[i]) * double(x[j]);
    }
  }
  return gram;
}

/// Inputs that lie mostly in few directions, as activations do: a random mixture of `directions`.
inline DenseMatrix correlated_inputs(std::int64_t rows, std::int64_t columns, std::int64_t directions, std::mt19937_64& random) {
  const DenseMatrix mix = random_matrix(directions, columns, random);
  const DenseMatrix weights = random_matrix(rows, directions, random);
  DenseMatrix out = random_matrix(rows, columns, random, 0.1);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t d = 0; d < directions; ++d) {
      for (std::int64_t c = 0; c < columns; ++c) {
        out.values[std::size_t(r * columns + c)] += weights.values[std::size_t(r * directions + d)] * mix.values[std::size_t(d * columns + c)];
      }
    }
  }
  return out;
}

/// |(W - V) x|^2 / |W x|^2 over all inputs, output by output.
inline double naive_error(const DenseMatrix& w, const DenseMatrix& v, const DenseMatrix& inputs) {
  double wrong = 0.0;
  double all = 0.0;
  for (std::int64_t r = 0; r < inputs.rows; ++r) {
    for (std::int64_t o = 0; o < w.rows; ++o) {
      double difference = 0.0;
      double output = 0.0;
      for (std::int64_t c = 0; c < w.columns; ++c) {
        const double x = inputs.values[std::size_t(r * w.columns + c)];
        const double weight = w.values[std::size_t(o * w.columns + c)];
        difference += x * (weight - double(v.values[std::size_t(o * w.columns + c)]));
        output += x * weight;
      }
      wrong += difference * difference;
      all += output * output;
    }
  }
  return wrong / all;
}

}  // namespace sangam::merging
