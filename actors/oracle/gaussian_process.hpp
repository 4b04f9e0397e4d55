// Gaussian process regression over a bounded window of observations (Rasmussen and Williams, 2006, chapters 2 and 5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sangam {

struct GaussianProcessOptions {
  std::size_t inputs = 1;
  std::size_t points_max = 96;     ///< Of the window.
  std::size_t fit_points_max = 48;  ///< Of these, evenly over the window, hyper-parameters are fitted to.
  double scale = 1.0;              ///< Deviation of targets that is expected before any is seen.
  std::uint64_t seed = 1;          ///< Of random restarts.
};

/// Logarithms, so that any value is valid; lengths are in deviations of their input, the others in target units.
struct HyperParameters {
  std::vector<double> lengths;
  double signal = 0.0;    ///< Deviation of what varies with the inputs,
  double constant = 0.0;  ///< of what is the same everywhere,
  double noise = 0.0;     ///< and of what no input explains.
};

/// Learns f in y = f(x) + noise from zero mean and the covariance
///   constant^2 + signal^2 exp(-sum ((x_d - x'_d) / length_d)^2 / 2)
/// with inputs standardised at each fit. Observations come one by one; the Cholesky factor of their covariance is
/// appended to and cut by rank-one steps, O(n^2) each. A full window gives up the older of its two most alike
/// points, or the oldest if none are alike. A covariance that is not positive definite in floating point gets a
/// growing jitter on its diagonal.
class GaussianProcess {
 public:
  struct Prediction {
    double mean = 0.0;
    double variance = 0.0;  ///< Of f, without the noise of an observation.
  };

  explicit GaussianProcess(const GaussianProcessOptions& options);

  /// `noise_variance`: of this observation, beside the noise that is learned. Values that are not finite are ignored.
  void add(std::span<const double> x, double y, double noise_variance = 0.0);
  /// Outside the range of an input seen, the variance grows by signal^2 times the square of the distance to that
  /// range in lengths: the farther, the less is claimed, without limit.
  [[nodiscard]] Prediction predict(std::span<const double> x) const;

  /// Whether the window has changed enough for new hyper-parameters.
  [[nodiscard]] bool fit_due() const;
  /// Maximises the likelihood of the targets times weak log-normal priors of the hyper-parameters, from the present
  /// ones and from `restarts` random ones.
  void fit(int restarts, int iterations_max = 30);
  /// Takes these, and standardises by the present window.
  void set(const HyperParameters& hyper);
  /// Computes anew what the rank-one steps have kept; the difference is rounding.
  void factorise();

  [[nodiscard]] std::size_t size() const { return targets_.size(); }
  [[nodiscard]] const HyperParameters& hyper() const { return hyper_; }
  [[nodiscard]] double noise_variance() const;
  /// Logarithm of likelihood times priors for the whole window; `gradient`: lengths, signal, constant, noise.
  [[nodiscard]] double log_posterior(const HyperParameters& hyper, std::span<double> gradient) const;

 private:
  [[nodiscard]] double log_posterior(const HyperParameters& hyper, std::span<double> gradient,
                                     std::span<const std::size_t> points) const;
  [[nodiscard]] std::vector<double> standard(std::span<const double> x) const;
  /// From `x` (standardised) to each point; without the constant.
  void covariances(std::span<const double> x, std::span<double> to_points) const;
  [[nodiscard]] std::size_t dispensable() const;
  void remove(std::size_t point);
  /// False if rounding leaves no positive pivot.
  [[nodiscard]] bool append_row();
  void standardise();
  void solve_targets();

  GaussianProcessOptions options_;
  HyperParameters hyper_;
  std::vector<double> means_, deviations_;  // Of the inputs, as of the last fit.
  std::vector<double> raw_;                 // (size, inputs), the oldest first.
  std::vector<double> scaled_;              // The same, standardised.
  std::vector<double> lowest_, highest_;    // Of `scaled_`, an input each.
  std::vector<double> targets_, noises_;
  std::vector<double> factor_;   // Cholesky factor, (points_max, points_max) by columns, lower triangle.
  std::vector<double> weights_;  // Covariance^-1 targets.
  double jitter_ = 0.0;
  std::size_t added_ = 0;        // Since the last fit,
  std::size_t fitted_size_ = 0;  // to so many points.
};

}  // namespace sangam
