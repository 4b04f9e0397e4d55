// The Gaussian process against dense formulas, finite differences, and functions that it has to find.
#include "actors/oracle/gaussian_process.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

using namespace sangam;

namespace {

using Row = std::vector<double>;

struct Sample {
  Row x;
  double y = 0.0;
  double noise = 0.0;
};

/// Solves a x = b by Gaussian elimination with partial pivots.
Row solve(std::vector<Row> a, Row b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i) pivot = std::abs(a[i][k]) > std::abs(a[pivot][k]) ? i : pivot;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// Equations 2.23 and 2.24 of Rasmussen and Williams, word by word.
struct Dense {
  std::vector<Sample> samples;
  HyperParameters hyper;
  double noise = 0.0;

  [[nodiscard]] Row standard(const Row& x) const {
    Row z(x.size());
    for (std::size_t d = 0; d < x.size(); ++d) {
      double mean = 0.0;
      double square = 0.0;
      for (const Sample& s : samples) mean += s.x[d] / double(samples.size());
      for (const Sample& s : samples) square += (s.x[d] - mean) * (s.x[d] - mean) / double(samples.size());
      z[d] = (x[d] - mean) / std::sqrt(square);
    }
    return z;
  }
  [[nodiscard]] double kernel(const Row& a, const Row& b) const {
    double sum = 0.0;
    for (std::size_t d = 0; d < a.size(); ++d) {
      const double distance = (standard(a)[d] - standard(b)[d]) / std::exp(hyper.lengths[d]);
      sum += distance * distance;
    }
    return std::exp(2.0 * hyper.constant) + std::exp(2.0 * hyper.signal) * std::exp(-0.5 * sum);
  }
  [[nodiscard]] GaussianProcess::Prediction predict(const Row& x) const {
    const std::size_t n = samples.size();
    std::vector<Row> k(n, Row(n));
    Row to(n);
    Row y(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) k[i][j] = kernel(samples[i].x, samples[j].x);
      k[i][i] += noise + samples[i].noise;
      to[i] = kernel(samples[i].x, x);
      y[i] = samples[i].y;
    }
    const Row weights = solve(k, y);
    const Row back = solve(k, to);
    GaussianProcess::Prediction p{0.0, kernel(x, x)};
    for (std::size_t i = 0; i < n; ++i) p.mean += to[i] * weights[i], p.variance -= to[i] * back[i];
    return p;
  }
};

std::vector<Sample> random_samples(std::size_t count, std::size_t inputs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-3.0, 3.0);
  std::normal_distribution<double> normal;
  std::vector<Sample> samples(count);
  for (Sample& s : samples) {
    for (std::size_t d = 0; d < inputs; ++d) s.x.push_back(uniform(random));
    s.y = std::sin(s.x[0]) + 0.1 * normal(random);
    s.noise = random() % 2 == 0 ? 0.05 : 0.0;
  }
  return samples;
}

GaussianProcessOptions options(std::size_t inputs, std::size_t points_max = 96) {
  GaussianProcessOptions o;
  o.inputs = inputs;
  o.points_max = points_max;
  o.fit_points_max = points_max;
  return o;
}

HyperParameters hyper(std::size_t inputs) {
  HyperParameters h{std::vector<double>(inputs, 0.2), -0.1, -0.5, -1.5};
  h.lengths[0] = -0.3;
  return h;
}

void add_all(GaussianProcess& process, const std::vector<Sample>& samples) {
  for (const Sample& s : samples) process.add(s.x, s.y, s.noise);
}

}  // namespace

TEST_CASE("with one observation the prediction is the textbook's") {
  GaussianProcess process(options(1));
  const Row at{2.0};
  process.add(at, 3.0, 0.5);
  // The covariance of the point with itself is signal^2 + constant^2 = 2, the noise 0.3^2 + 1e-4 + 0.5.
  const double noise = 0.09 + 1e-4 + 0.5;
  CHECK(process.predict(at).mean == doctest::Approx(3.0 * 2.0 / (2.0 + noise)));
  CHECK(process.predict(at).variance == doctest::Approx(2.0 - 4.0 / (2.0 + noise)));
}

TEST_CASE("predictions are those of the dense formulas") {
  GaussianProcess process(options(3));
  const std::vector<Sample> samples = random_samples(30, 3, 1);
  add_all(process, samples);
  process.set(hyper(3));
  const Dense dense{samples, hyper(3), process.noise_variance()};
  for (const Sample& s : random_samples(20, 3, 2)) {
    const Row inside{s.x[0] * 0.8, s.x[1] * 0.8, s.x[2] * 0.8};
    CHECK(process.predict(inside).mean == doctest::Approx(dense.predict(inside).mean).epsilon(1e-9));
    CHECK(process.predict(inside).variance == doctest::Approx(dense.predict(inside).variance).epsilon(1e-9));
  }
}

TEST_CASE("the gradient of the posterior is that of finite differences") {
  GaussianProcess process(options(3));
  add_all(process, random_samples(25, 3, 3));
  process.set(hyper(3));
  Row gradient(6);
  (void)process.log_posterior(hyper(3), gradient);
  const auto at = [&](std::size_t i, double shift) {
    HyperParameters h = hyper(3);
    (i < 3 ? h.lengths[i] : i == 3 ? h.signal : i == 4 ? h.constant : h.noise) += shift;
    Row unused(6);
    return process.log_posterior(h, unused);
  };
  for (std::size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(gradient[i] == doctest::Approx((at(i, 1e-5) - at(i, -1e-5)) / 2e-5).epsilon(1e-5));
  }
}

TEST_CASE("observations one by one give what they give at once, also beyond the window") {
  // The first samples' standardisation stays until the next fit, so a factor that starts from it is the reference.
  GaussianProcess first(options(2, 20));
  add_all(first, random_samples(20, 2, 4));
  first.set(hyper(2));
  GaussianProcess process = first;
  for (const Sample& s : random_samples(60, 2, 5)) {
    process.add(s.x, s.y, s.noise);
    REQUIRE(process.size() == 20);
    GaussianProcess anew = process;
    anew.factorise();
    for (const Sample& probe : random_samples(5, 2, 6)) {
      CHECK(process.predict(probe.x).mean == doctest::Approx(anew.predict(probe.x).mean).epsilon(1e-9));
      CHECK(process.predict(probe.x).variance == doctest::Approx(anew.predict(probe.x).variance).epsilon(1e-8));
    }
  }
}

TEST_CASE("a full window gives up the older of two points that say the same, else the oldest") {
  GaussianProcess process(options(1, 4));
  process.set({{std::log(0.1)}, 0.0, -3.0, -4.0});
  for (const double x : {0.0, 1.0, 2.0, 1.01}) process.add(Row{x}, x);
  process.add(Row{3.0}, 3.0);  // Drops 1.0 for 1.01.
  CHECK(process.predict(Row{0.0}).variance < 0.01);
  CHECK(process.predict(Row{2.0}).variance < 0.01);
  process.add(Row{4.0}, 4.0);  // Drops 0.0.
  CHECK(process.predict(Row{0.0}).variance > 0.9);
  CHECK(process.predict(Row{2.0}).variance < 0.01);
  CHECK(process.size() == 4);
}

TEST_CASE("a function is found, its irrelevant input too, and nine of ten intervals hold") {
  const auto law = [](const Row& x) { return std::sin(x[0]) + 0.3 * x[1]; };
  int covered = 0;
  int asked = 0;
  double squared = 0.0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-3.0, 3.0);
    std::normal_distribution<double> noise(0.0, 0.1);
    GaussianProcess process(options(3));
    for (int i = 0; i < 80; ++i) {
      const Row x{uniform(random), uniform(random), uniform(random)};
      process.add(x, law(x) + noise(random));
      if (process.fit_due()) process.fit(1);
    }
    CHECK(process.hyper().lengths[2] > process.hyper().lengths[0]);
    CHECK(std::exp(process.hyper().noise) == doctest::Approx(0.1).epsilon(0.35));
    for (int i = 0; i < 100; ++i, ++asked) {
      const Row x{uniform(random), uniform(random), uniform(random)};
      const GaussianProcess::Prediction p = process.predict(x);
      const double deviation = std::sqrt(p.variance + process.noise_variance());
      covered += std::abs(p.mean - law(x) - noise(random)) <= 1.645 * deviation;
      squared += (p.mean - law(x)) * (p.mean - law(x));
    }
  }
  MESSAGE("coverage of the 90 % interval: " << double(covered) / asked);
  CHECK(double(covered) / asked > 0.87);
  CHECK(double(covered) / asked < 0.93);
  CHECK(std::sqrt(squared / asked) < 0.08);
}

TEST_CASE("outside what was seen the variance grows without limit") {
  GaussianProcess process(options(1));
  for (int i = 0; i <= 10; ++i) process.add(Row{double(i)}, 0.1 * i);
  process.set({{0.0}, 0.0, -2.0, -2.0});
  const double signal = 1.0;
  double before = process.predict(Row{10.0}).variance;
  CHECK(before < 0.1);
  for (const double x : {14.0, 20.0, 40.0, 100.0}) {
    const double variance = process.predict(Row{x}).variance;
    CHECK(variance > before);
    before = variance;
  }
  CHECK(before > 100.0 * signal);
}

TEST_CASE("observations that coincide, contradict or are no numbers break nothing") {
  GaussianProcess process(options(2));
  HyperParameters exact{{3.0, 3.0}, 2.0, 2.0, -30.0};
  for (int i = 0; i < 50; ++i) process.add(Row{1.0, 2.0}, 1.0);
  process.set(exact);
  for (int i = 0; i < 20; ++i) process.add(Row{1.0, 2.0}, 1.0);
  process.add(Row{std::nan(""), 1.0}, 1.0);
  process.add(Row{1.0, 1.0}, std::numeric_limits<double>::infinity());
  process.add(Row{1.0, 1.0}, 1.0, -1.0);
  CHECK(process.size() == 70);
  CHECK(process.predict(Row{1.0, 2.0}).mean == doctest::Approx(1.0).epsilon(0.01));
  CHECK(process.predict(Row{1.0, 2.0}).variance >= 0.0);
  process.fit(1);
  CHECK(std::isfinite(process.predict(Row{5.0, 5.0}).mean));
}
