// The window of observations: appended to, cut, standardised, and what it predicts.
#include "actors/oracle/gaussian_process.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "actors/oracle/lbfgs.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr double kDeviationMin = 0.05;  // An input that hardly varies is not blown up.
constexpr double kAlike = 0.1;          // Squared distance in lengths: correlation above 0.95.
constexpr std::size_t kFitMin = 8;      // Points.
// Priors of the logarithms: centre and deviation. Lengths of a few deviations: the law takes most of the change.
constexpr double kLengthPrior = 1.1, kLengthSpread = 0.8;
constexpr double kScaleSpread = 1.2;
constexpr double kNoiseShare = 0.3;  // Of the expected scale.
constexpr double kNoiseFloor = 1e-4;

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Factor = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
using ConstFactor = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
using ConstVector = Eigen::Map<const Vector>;
using Index = Eigen::Index;

HyperParameters unpack(std::span<const double> x) {
  const std::size_t d = x.size() - 3;
  return {{x.begin(), x.begin() + std::ptrdiff_t(d)}, x[d], x[d + 1], x[d + 2]};
}

std::vector<double> pack(const HyperParameters& hyper) {
  std::vector<double> x = hyper.lengths;
  x.insert(x.end(), {hyper.signal, hyper.constant, hyper.noise});
  return x;
}

HyperParameters expected(const GaussianProcessOptions& options) {
  const double scale = std::log(options.scale);
  return {std::vector<double>(options.inputs, kLengthPrior), scale, scale, scale + std::log(kNoiseShare)};
}

double square(double x) { return x * x; }

}  // namespace

GaussianProcess::GaussianProcess(const GaussianProcessOptions& options)
    : options_(options),
      hyper_(expected(options)),
      means_(options.inputs, 0.0),
      deviations_(options.inputs, 1.0),
      factor_(options.points_max * options.points_max) {}

double GaussianProcess::noise_variance() const { return std::exp(2.0 * hyper_.noise) + kNoiseFloor * square(options_.scale); }

std::vector<double> GaussianProcess::standard(std::span<const double> x) const {
  std::vector<double> z(x.size());
  for (std::size_t d = 0; d < z.size(); ++d) z[d] = (x[d] - means_[d]) / deviations_[d];
  return z;
}

void GaussianProcess::covariances(std::span<const double> x, std::span<double> to_points) const {
  const std::size_t inputs = options_.inputs;
  const double signal = 2.0 * hyper_.signal;
  std::vector<double> inverse(inputs);
  for (std::size_t d = 0; d < inputs; ++d) inverse[d] = std::exp(-hyper_.lengths[d]);
  for (std::size_t i = 0; i < to_points.size(); ++i) {
    double distance = 0.0;
    for (std::size_t d = 0; d < inputs; ++d) distance += square((x[d] - scaled_[i * inputs + d]) * inverse[d]);
    to_points[i] = std::exp(signal - 0.5 * distance);
  }
}

void GaussianProcess::add(std::span<const double> x, double y, double noise_variance) {
  SANGAM_ASSERT(x.size() == options_.inputs, x.size(), options_.inputs);
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(x.begin(), x.end(), finite) || !finite(y) || !finite(noise_variance) || noise_variance < 0.0) return;
  if (size() >= options_.points_max) remove(dispensable());
  const std::vector<double> z = standard(x);
  raw_.insert(raw_.end(), x.begin(), x.end());
  scaled_.insert(scaled_.end(), z.begin(), z.end());
  targets_.push_back(y);
  noises_.push_back(noise_variance);
  ++added_;
  append_row() ? solve_targets() : factorise();
}

bool GaussianProcess::append_row() {
  const std::size_t n = size() - 1;
  Factor factor(factor_.data(), Index(n + 1), Index(n + 1), Eigen::OuterStride<>(Index(options_.points_max)));
  Vector row(n);
  covariances(std::span(scaled_).last(options_.inputs), {row.data(), n});
  const double constant = std::exp(2.0 * hyper_.constant);
  row.array() += constant;
  factor.topLeftCorner(Index(n), Index(n)).triangularView<Eigen::Lower>().solveInPlace(row);
  const double own = std::exp(2.0 * hyper_.signal) + constant + noise_variance() + noises_.back() + jitter_;
  const double pivot = own - row.squaredNorm();
  if (!(pivot > 1e-10 * own)) return false;
  factor.row(Index(n)).head(Index(n)) = row.transpose();
  factor(Index(n), Index(n)) = std::sqrt(pivot);
  return true;
}

/// Of two points that say nearly the same, the older one; the oldest of all if there are no such two.
std::size_t GaussianProcess::dispensable() const {
  std::size_t best = 0;
  double nearest = kAlike;
  const std::size_t inputs = options_.inputs;
  std::vector<double> z = scaled_;
  for (std::size_t i = 0; i < z.size(); ++i) z[i] *= std::exp(-hyper_.lengths[i % inputs]);
  for (std::size_t i = 0; i < size(); ++i) {
    for (std::size_t j = i + 1; j < size(); ++j) {
      double distance = 0.0;
      for (std::size_t d = 0; d < inputs && distance < nearest; ++d) distance += square(z[i * inputs + d] - z[j * inputs + d]);
      if (distance < nearest) nearest = distance, best = i;
    }
  }
  return best;
}

/// Without row and column p, the covariance of what follows lacks the outer product of column p of the factor below
/// the diagonal in its own part of the factor: that part is updated by rank one.
void GaussianProcess::remove(std::size_t point) {
  const Index n = Index(size());
  const Index p = Index(point);
  Factor l(factor_.data(), n, n, Eigen::OuterStride<>(Index(options_.points_max)));
  Vector v = l.col(p).tail(n - p - 1);
  for (Index k = p + 1; k < n; ++k) {
    const Index j = k - p - 1;
    const double r = std::hypot(l(k, k), v(j));
    const double c = r / l(k, k);
    const double s = v(j) / l(k, k);
    l(k, k) = r;
    for (Index i = k + 1; i < n; ++i) {
      l(i, k) = (l(i, k) + s * v(i - p - 1)) / c;
      v(i - p - 1) = c * v(i - p - 1) - s * l(i, k);
    }
  }
  for (Index column = 0; column < n - 1; ++column) {
    for (Index i = std::max(column, p); i < n - 1; ++i) l(i, column) = l(i + 1, column < p ? column : column + 1);
  }
  const auto erase_row = [&](std::vector<double>& rows, std::size_t width) {
    const auto first = rows.begin() + std::ptrdiff_t(point * width);
    rows.erase(first, first + std::ptrdiff_t(width));
  };
  erase_row(raw_, options_.inputs);
  erase_row(scaled_, options_.inputs);
  erase_row(targets_, 1);
  erase_row(noises_, 1);
}

void GaussianProcess::factorise() {
  const Index n = Index(size());
  Matrix covariance(n, n);
  for (Index i = 0; i < n; ++i) {
    covariances(std::span(scaled_).subspan(std::size_t(i) * options_.inputs, options_.inputs),
                {covariance.col(i).data(), std::size_t(n)});
  }
  covariance.array() += std::exp(2.0 * hyper_.constant);
  for (Index i = 0; i < n; ++i) covariance(i, i) += noise_variance() + noises_[std::size_t(i)];
  const double scale = covariance.diagonal().mean();
  Eigen::LLT<Matrix> llt(covariance);
  // With a jitter of the whole scale the matrix is positive definite beyond doubt, so the loop ends.
  for (jitter_ = 0.0; llt.info() != Eigen::Success && jitter_ < scale;) {
    const double next = jitter_ == 0.0 ? 1e-10 * scale : 10.0 * jitter_;
    covariance.diagonal().array() += next - jitter_;
    jitter_ = next;
    llt.compute(covariance);
  }
  SANGAM_ASSERT(llt.info() == Eigen::Success, n, scale);
  Factor factor(factor_.data(), n, n, Eigen::OuterStride<>(Index(options_.points_max)));
  factor = llt.matrixL();
  solve_targets();
}

void GaussianProcess::solve_targets() {
  const Index n = Index(size());
  const ConstFactor factor(factor_.data(), n, n, Eigen::OuterStride<>(Index(options_.points_max)));
  Vector weights = ConstVector(targets_.data(), n);
  factor.triangularView<Eigen::Lower>().solveInPlace(weights);
  factor.triangularView<Eigen::Lower>().transpose().solveInPlace(weights);
  weights_.assign(weights.begin(), weights.end());
  lowest_.assign(options_.inputs, INFINITY);
  highest_.assign(options_.inputs, -INFINITY);
  for (std::size_t i = 0; i < scaled_.size(); ++i) {
    const std::size_t d = i % options_.inputs;
    lowest_[d] = std::min(lowest_[d], scaled_[i]);
    highest_[d] = std::max(highest_[d], scaled_[i]);
  }
}

GaussianProcess::Prediction GaussianProcess::predict(std::span<const double> x) const {
  SANGAM_ASSERT(x.size() == options_.inputs, x.size(), options_.inputs);
  const double constant = std::exp(2.0 * hyper_.constant);
  const double signal = std::exp(2.0 * hyper_.signal);
  if (targets_.empty()) return {0.0, signal + constant};
  const std::vector<double> z = standard(x);
  const Index n = Index(size());
  Vector row(n);
  covariances(z, {row.data(), size()});
  row.array() += constant;
  Prediction prediction;
  prediction.mean = row.dot(ConstVector(weights_.data(), n));
  const ConstFactor factor(factor_.data(), n, n, Eigen::OuterStride<>(Index(options_.points_max)));
  factor.triangularView<Eigen::Lower>().solveInPlace(row);
  prediction.variance = std::max(0.0, signal + constant - row.squaredNorm());
  for (std::size_t d = 0; d < z.size(); ++d) {
    const double outside = std::max({0.0, lowest_[d] - z[d], z[d] - highest_[d]});
    prediction.variance += signal * square(outside * std::exp(-hyper_.lengths[d]));
  }
  return prediction;
}

void GaussianProcess::standardise() {
  const std::size_t inputs = options_.inputs;
  for (std::size_t d = 0; d < inputs; ++d) {
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t i = d; i < raw_.size(); i += inputs) sum += raw_[i];
    means_[d] = sum / double(size());
    for (std::size_t i = d; i < raw_.size(); i += inputs) squares += square(raw_[i] - means_[d]);
    deviations_[d] = std::max(kDeviationMin, std::sqrt(squares / double(size())));
  }
  for (std::size_t i = 0; i < raw_.size(); ++i) scaled_[i] = (raw_[i] - means_[i % inputs]) / deviations_[i % inputs];
}

void GaussianProcess::set(const HyperParameters& hyper) {
  SANGAM_ASSERT(hyper.lengths.size() == options_.inputs, hyper.lengths.size(), options_.inputs);
  hyper_ = hyper;
  if (targets_.empty()) return;
  standardise();
  factorise();
}

bool GaussianProcess::fit_due() const {
  if (size() < kFitMin) return false;
  // At 8, 16, 32 ... points, later when the window has been replaced once.
  return fitted_size_ == 0 || added_ >= std::min(fitted_size_, options_.points_max);
}

void GaussianProcess::fit(int restarts, int iterations_max) {
  if (size() < 2) return;
  standardise();
  std::vector<std::size_t> points(std::min(size(), options_.fit_points_max));
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = i * size() / points.size();
  const Objective objective = [&](std::span<const double> x, std::span<double> gradient) {
    const double value = -log_posterior(unpack(x), gradient, points);
    for (double& g : gradient) g = -g;
    return value;
  };
  Minimum best = minimise(objective, pack(hyper_), iterations_max);
  std::mt19937_64 random(options_.seed + fitted_size_);
  std::normal_distribution<double> normal;
  for (int restart = 0; restart < restarts; ++restart) {
    std::vector<double> start = pack(expected(options_));
    for (double& value : start) value += normal(random);
    Minimum other = minimise(objective, std::move(start), iterations_max);
    if (std::isfinite(other.value) && (!std::isfinite(best.value) || other.value < best.value)) best = std::move(other);
  }
  if (std::isfinite(best.value)) hyper_ = unpack(best.x);
  fitted_size_ = size();
  added_ = 0;
  factorise();
}

double GaussianProcess::log_posterior(const HyperParameters& hyper, std::span<double> gradient) const {
  std::vector<std::size_t> all(size());
  std::iota(all.begin(), all.end(), std::size_t(0));
  return log_posterior(hyper, gradient, all);
}

double GaussianProcess::log_posterior(const HyperParameters& hyper, std::span<double> gradient,
                                      std::span<const std::size_t> points) const {
  const Index n = Index(points.size());
  const Index inputs = Index(options_.inputs);
  Matrix x(n, inputs);
  Vector y(n);
  for (Index i = 0; i < n; ++i) {
    const std::size_t point = points[std::size_t(i)];
    for (Index d = 0; d < inputs; ++d) {
      x(i, d) = scaled_[point * options_.inputs + std::size_t(d)] * std::exp(-hyper.lengths[std::size_t(d)]);
    }
    y(i) = targets_[point];
  }
  const Vector norms = x.rowwise().squaredNorm();
  Matrix varying = (x * x.transpose()).eval();
  varying = ((varying.colwise() - 0.5 * norms).rowwise() - 0.5 * norms.transpose()).array() + 2.0 * hyper.signal;
  varying = varying.array().exp();
  const double constant = std::exp(2.0 * hyper.constant);
  const double noise = std::exp(2.0 * hyper.noise);
  Matrix covariance = varying.array() + constant;
  for (Index i = 0; i < n; ++i) {
    covariance(i, i) += noise + kNoiseFloor * square(options_.scale) + noises_[points[std::size_t(i)]];
  }
  const Eigen::LLT<Matrix> llt(covariance);
  if (llt.info() != Eigen::Success) return -INFINITY;
  const Vector weights = llt.solve(y);
  double value = -0.5 * y.dot(weights) - llt.matrixLLT().diagonal().array().log().sum() -
                 0.5 * double(n) * std::log(2.0 * M_PI);

  // d log p / d t = tr((w w' - K^-1) dK/dt) / 2; for a length, dK = K (difference)^2 elementwise.
  const Matrix pull = weights * weights.transpose() - llt.solve(Matrix::Identity(n, n));
  const Matrix weighted = pull.cwiseProduct(varying);
  const Vector sums = weighted.rowwise().sum();
  const Matrix product = weighted * x;
  for (Index d = 0; d < inputs; ++d) {
    gradient[std::size_t(d)] = x.col(d).cwiseAbs2().dot(sums) - x.col(d).dot(product.col(d));
  }
  gradient[options_.inputs] = sums.sum();
  gradient[options_.inputs + 1] = constant * pull.sum();
  gradient[options_.inputs + 2] = noise * pull.trace();

  const std::vector<double> at = pack(hyper);
  const std::vector<double> centre = pack(expected(options_));
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double spread = i < options_.inputs ? kLengthSpread : kScaleSpread;
    value -= 0.5 * square((at[i] - centre[i]) / spread);
    gradient[i] -= (at[i] - centre[i]) / square(spread);
  }
  return value;
}

}  // namespace sangam
