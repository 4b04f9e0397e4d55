// What codes and corrections keep of a matrix's outputs, computed output by output.
#include "actors/merger/weights/encoder.hpp"

#include <doctest/doctest.h>

#include "tests/unit/merger/random_weights.hpp"

namespace sangam::merging {
namespace {

/// One slot: its weights, its inputs and what is known of these.
struct Slot {
  explicit Slot(std::uint64_t seed) : random(seed), weights(random_matrix(48, 96, random, 0.05)), inputs(correlated_inputs(400, 96, 24, random)), gram(gram_of(inputs)) {}
  std::mt19937_64 random;
  DenseMatrix weights;
  DenseMatrix inputs;
  Gram gram;
};

/// Each weight to its nearest level of the best common scale of its group, in the plain sense: no feedback.
DenseMatrix rounded(const DenseMatrix& m, RowCode code) {
  DenseMatrix out = m;
  for (std::size_t first = 0; first < m.values.size(); first += std::size_t(kCodeGroup)) {
    double least = 1e300;
    std::vector<float> best(kCodeGroup);
    for (int i = 1; i <= 400; ++i) {
      const float scale = 0.0005f * float(i);
      double error = 0.0;
      std::vector<float> now;
      for (std::size_t k = 0; k < std::size_t(kCodeGroup); ++k) {
        float nearest = 1e9f;
        for (const float level : levels(code)) {
          if (std::abs(level * scale - m.values[first + k]) < std::abs(nearest - m.values[first + k])) nearest = level * scale;
        }
        now.push_back(nearest);
        error += double(nearest - m.values[first + k]) * double(nearest - m.values[first + k]);
      }
      if (error < least) {
        least = error;
        best = now;
      }
    }
    std::copy(best.begin(), best.end(), out.values.begin() + std::ptrdiff_t(first));
  }
  return out;
}

}  // namespace

TEST_CASE("the error of outputs is what the outputs say") {
  Slot slot(1);
  const DenseMatrix other = random_matrix(48, 96, slot.random, 0.05);
  CHECK(output_error(slot.weights, other, slot.gram) == doctest::Approx(naive_error(slot.weights, other, slot.inputs)).epsilon(1e-6));
  CHECK(output_error(slot.weights, slot.weights, slot.gram) == 0.0);
}

TEST_CASE("bytes and decoded weights are the same matrix") {
  Slot slot(2);
  for (const RowCode code : {RowCode::b1, RowCode::b2, RowCode::b3, RowCode::b4, RowCode::b8}) {
    const EncodedMatrix out = encode(slot.weights, code, ErrorFeedback(slot.gram));
    const std::size_t stride = row_bytes(code, 96);
    REQUIRE(out.bytes.size() == 48 * stride);
    for (std::size_t r = 0; r < 48; ++r) {
      std::vector<float> row(96);
      decode_row(code, std::span(out.bytes).subspan(r * stride, stride), row);
      CHECK(std::equal(row.begin(), row.end(), out.decoded.values.begin() + std::ptrdiff_t(96 * r)));
    }
  }
}

TEST_CASE("feedback leaves much less error in the outputs than rounding does") {
  Slot slot(3);
  double before = 1.0;
  for (const RowCode code : {RowCode::b2, RowCode::b3, RowCode::b4}) {
    const double fed = naive_error(slot.weights, encode(slot.weights, code, ErrorFeedback(slot.gram)).decoded, slot.inputs);
    const double plain = naive_error(slot.weights, rounded(slot.weights, code), slot.inputs);
    CAPTURE(int(code));
    CHECK(fed < 0.6 * plain);
    CHECK(fed < 0.5 * before);  // Each bit takes about three quarters of the error.
    before = fed;
  }
  const EncodedMatrix eight = encode(slot.weights, RowCode::b8, ErrorFeedback(slot.gram));
  CHECK(naive_error(slot.weights, eight.decoded, slot.inputs) < 1e-4);
}

TEST_CASE("a row of zeros stays zero, and one large weight does not spoil other rows") {
  Slot slot(4);
  for (int c = 0; c < 96; ++c) slot.weights.values[std::size_t(c)] = 0.0f;
  slot.weights.values[96 + 5] = 40.0f;
  const EncodedMatrix out = encode(slot.weights, RowCode::b4, ErrorFeedback(slot.gram));
  for (int c = 0; c < 96; ++c) CHECK(std::abs(out.decoded.values[std::size_t(c)]) < 1e-6f);
  const auto rest = [](const DenseMatrix& m) {
    return DenseMatrix{46, 96, std::vector<float>(m.values.begin() + 192, m.values.end())};
  };
  CHECK(naive_error(rest(slot.weights), rest(out.decoded), slot.inputs) < 0.02);
}

TEST_CASE("low rank keeps a matrix of that rank, and of another what matters for the outputs") {
  Slot slot(5);
  DenseMatrix product{48, 96, std::vector<float>(48 * 96, 0.0f)};
  const DenseMatrix up = random_matrix(48, 3, slot.random);
  const DenseMatrix down = random_matrix(3, 96, slot.random);
  for (std::size_t r = 0; r < 48; ++r) {
    for (std::size_t c = 0; c < 96; ++c) {
      for (std::size_t k = 0; k < 3; ++k) product.values[96 * r + c] += up.values[3 * r + k] * down.values[96 * k + c];
    }
  }
  CHECK(naive_error(product, LowRankParts(product, slot.gram).cut(3).product, slot.inputs) < 1e-4);  // What bf16 leaves.
  // The inputs have 24 directions: that rank keeps nearly all that comes out, though a quarter of the matrix.
  const LowRankMatrix part = LowRankParts(slot.weights, slot.gram).cut(24);
  CHECK(naive_error(slot.weights, part.product, slot.inputs) < 0.02);
  double entries = 0.0, missing = 0.0;
  for (std::size_t i = 0; i < part.product.values.size(); ++i) {
    entries += double(slot.weights.values[i]) * double(slot.weights.values[i]);
    missing += std::pow(double(slot.weights.values[i] - part.product.values[i]), 2.0);
  }
  CHECK(missing > 0.3 * entries);
}

TEST_CASE("scale and shift of each row are found where they are the whole difference") {
  Slot slot(6);
  DenseMatrix other = slot.weights;
  for (std::size_t r = 0; r < 48; ++r) {
    for (std::size_t c = 0; c < 96; ++c) other.values[96 * r + c] = (1.0f + 0.01f * float(r)) * slot.weights.values[96 * r + c] + 0.001f * float(r);
  }
  const RowAffine line = row_affine(other, slot.weights, slot.gram);
  for (std::size_t r = 0; r < 48; ++r) {
    CHECK(std::abs(line.scale[r] - (1.0f + 0.01f * float(r))) < 1e-4f);
    CHECK(std::abs(line.shift[r] - 0.001f * float(r)) < 1e-5f);
  }
  CHECK(naive_error(other, line.applied, slot.inputs) < 1e-8);
}

TEST_CASE("bf16 is rounded to nearest, ties to even") {
  const DenseMatrix out = rounded_to_bf16({1, 4, {1.0f, 1.00390625f, 1.01171875f, -3.1415927f}});
  CHECK(out.values == std::vector<float>{1.0f, 1.0f, 1.015625f, -3.140625f});
}

}  // namespace sangam::merging
