// Scales are searched over a grid around the deviation and then set by least squares; the row's own scale leaves
// room, since later groups have to take up the errors of earlier ones.
#include "actors/merger/weights/encoder.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "actors/merger/weights/eigen_views.hpp"
#include "messages/vocabulary/assert.hpp"
#include "storage/checkpoint/widened.hpp"

namespace sangam::merging {
namespace {

constexpr float kScaleRoom = 1.25f;  // Of the largest group's scale before any error was fed back.
constexpr int kScaleTries = 19;
constexpr float kScaleLeast = 0.6f, kScaleMost = 1.5f;  // Of the deviation, for codes of a unit normal.

/// The nearest level; between two, by their middle.
std::uint8_t nearest(std::span<const float> levels, float value) {
  std::size_t low = 0;
  std::size_t high = levels.size() - 1;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (value > 0.5f * (levels[middle] + levels[middle + 1])) low = middle + 1;
    else high = middle;
  }
  return std::uint8_t(low);
}

/// The scale of one group with the least error, weighed by what an error in each column costs.
float fitted_scale(std::span<const float> levels, std::span<const float> values, std::span<const float> costs) {
  float energy = 0.0f;
  float largest = 0.0f;
  for (const float v : values) {
    energy += v * v;
    largest = std::max(largest, std::abs(v));
  }
  if (energy == 0.0f) return 0.0f;
  const float top = levels.back();
  const bool integers = top > 16.0f;
  const float deviation = std::sqrt(energy / float(values.size()));
  float best = 0.0f;
  float least = std::numeric_limits<float>::infinity();
  for (int i = 0; i < (integers ? 1 : kScaleTries); ++i) {
    const float share = kScaleLeast + (kScaleMost - kScaleLeast) * float(i) / float(kScaleTries - 1);
    const float scale = integers ? largest / top : deviation * share;
    float product = 0.0f;
    float square = 0.0f;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const float level = levels[nearest(levels, values[k] / scale)];
      product += costs[k] * values[k] * level;
      square += costs[k] * level * level;
    }
    const float refined = integers || square <= 0.0f ? scale : std::max(product / square, 0.0f);
    // The error of the refined scale with these levels, but for the part that no scale changes.
    const float error = refined * refined * square - 2.0f * refined * product;
    if (error >= least) continue;
    least = error;
    best = refined;
  }
  return best;
}

/// The least half that is not below a positive value; the largest half where there is none.
std::uint16_t half_above(float value) {
  std::uint16_t low = 1;
  std::uint16_t high = 0x7bff;
  while (low < high) {
    const auto middle = std::uint16_t((low + high) / 2);
    if (half_value(middle) < value) low = std::uint16_t(middle + 1);
    else high = middle;
  }
  return low;
}

/// Encodes one row; `values` take up the errors as they arise.
class RowEncoder {
 public:
  RowEncoder(RowCode code, const ErrorFeedback& feedback)
      : code_(code), levels_(levels(code)), factor_(feedback.factor(), feedback.columns(), feedback.columns()) {
    for (Eigen::Index k = 0; k < factor_.cols(); ++k) costs_.push_back(float(1.0 / (factor_(k, k) * factor_(k, k))));
  }

  CodedRow encode(Eigen::VectorXd values) const {
    const std::int64_t columns = values.size();
    CodedRow row;
    row.row_scale = half_above(room_for(values));
    const float unit = half_value(row.row_scale);
    for (std::int64_t first = 0; first < columns; first += kCodeGroup) {
      const std::int64_t count = std::min(kCodeGroup, columns - first);
      const float scale = scale_at(values, first, count);
      // A group of zeros has no scale, and any code in it is zero.
      const auto steps = scale > 0.0f ? std::uint8_t(std::clamp(std::lround(scale / unit), 1l, 255l)) : std::uint8_t(0);
      row.group_scales.push_back(steps);
      const float used = unit * float(steps);
      for (std::int64_t k = first; k < first + count; ++k) {
        const std::uint8_t code = used > 0.0f ? nearest(levels_, float(values[k]) / used) : std::uint8_t(0);
        row.codes.push_back(code);
        const double error = (values[k] - double(used * levels_[code])) / factor_(k, k);
        const std::int64_t rest = columns - k - 1;
        values.tail(rest) -= error * factor_.row(k).tail(rest).transpose();
      }
    }
    return row;
  }

 private:
  float scale_at(const Eigen::VectorXd& values, std::int64_t first, std::int64_t count) const {
    std::vector<float> group;
    for (std::int64_t k = first; k < first + count; ++k) group.push_back(float(values[k]));
    return fitted_scale(levels_, group, std::span(costs_).subspan(std::size_t(first), std::size_t(count)));
  }

  /// The row's scale that lets the largest group have 255 steps, and some more.
  float room_for(const Eigen::VectorXd& values) const {
    float largest = 0.0f;
    for (std::int64_t first = 0; first < values.size(); first += kCodeGroup) {
      largest = std::max(largest, scale_at(values, first, std::min<std::int64_t>(kCodeGroup, values.size() - first)));
    }
    return std::max(largest * kScaleRoom / 255.0f, half_value(1));
  }

  RowCode code_;
  std::span<const float> levels_;
  Eigen::Map<const Eigen::MatrixXd> factor_;
  std::vector<float> costs_;
};

}  // namespace

struct ErrorFeedback::Factor {
  Eigen::MatrixXd upper;
};

ErrorFeedback::ErrorFeedback(const Gram& gram, double damping) : factor_(std::make_unique<Factor>()) {
  const Eigen::MatrixXd inverse =
      damped(gram, damping).llt().solve(Eigen::MatrixXd::Identity(gram.columns, gram.columns));
  factor_->upper = inverse.llt().matrixU();
}

ErrorFeedback::ErrorFeedback(ErrorFeedback&&) noexcept = default;
ErrorFeedback& ErrorFeedback::operator=(ErrorFeedback&&) noexcept = default;
ErrorFeedback::~ErrorFeedback() = default;

std::int64_t ErrorFeedback::columns() const { return factor_->upper.cols(); }
const double* ErrorFeedback::factor() const { return factor_->upper.data(); }

EncodedMatrix encode(const DenseMatrix& matrix, RowCode code, const ErrorFeedback& feedback) {
  SANGAM_ASSERT(matrix.columns == feedback.columns(), matrix.columns, feedback.columns());
  const std::size_t stride = row_bytes(code, matrix.columns);
  EncodedMatrix out{std::vector<std::byte>(stride * std::size_t(matrix.rows)),
                    {matrix.rows, matrix.columns, std::vector<float>(matrix.values.size())}};
  const RowEncoder encoder(code, feedback);
  const auto weights = view(matrix);
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    const std::span bytes = std::span(out.bytes).subspan(std::size_t(r) * stride, stride);
    pack_row(code, encoder.encode(weights.row(r).transpose().cast<double>()), bytes);
    decode_row(code, bytes,
               std::span(out.decoded.values).subspan(std::size_t(r * matrix.columns), std::size_t(matrix.columns)));
  }
  return out;
}

}  // namespace sangam::merging
