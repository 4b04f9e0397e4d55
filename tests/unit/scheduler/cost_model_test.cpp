// The cost model must find the law that made its measurements, and stay a sane one whatever it is told.
#include "actors/scheduler/cost_model.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace sangam;

namespace {

/// A law of the form that prefill times follow: launch, weights, attention.
struct Law {
  double fixed, per_token, per_token_squared;

  [[nodiscard]] double micros(double n) const { return fixed + per_token * n + per_token_squared * n * n; }
};

void teach(CostModel& model, const Law& law, int prefills, double noise, std::mt19937_64& random) {
  std::uniform_real_distribution<double> log_tokens(std::log(16.0), std::log(8192.0));
  std::normal_distribution<double> error(1.0, noise);
  for (int i = 0; i < prefills; ++i) {
    const auto n = Tokens(std::int64_t(std::exp(log_tokens(random))));
    model.learn(n, n, Micros(std::int64_t(law.micros(double(n.count())) * std::max(0.1, error(random)))));
  }
}

void check_law(const CostModel& model, const Law& law, double tolerance) {
  for (double n : {256.0, 1024.0, 4096.0, 8192.0}) {
    CAPTURE(n);
    CHECK(model.cost().micros(Tokens(std::int64_t(n))) == doctest::Approx(law.micros(n)).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("before the first prefill the cost is the prior plus the overhead of a step") {
  const CostModel model(2000.0, Micros(300));
  CHECK(model.cost().micros(Tokens(1000)) == doctest::Approx(500'300.0));
  CHECK(model.cost().micros(Tokens(0)) == doctest::Approx(300.0));
}

TEST_CASE("the cost model finds a quadratic law from exact measurements") {
  std::mt19937_64 random(1);
  const Law law{5000, 60, 0.004};
  CostModel model(100'000.0, Micros(200));
  teach(model, law, 200, 0.0, random);
  check_law(model, law, 0.02);
}

TEST_CASE("a tenth of noise moves the learned cost by less than a tenth") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Law law{5000, 60, 0.004};
    CostModel model(20'000.0, Micros(200));
    teach(model, law, 300, 0.1, random);
    check_law(model, law, 0.1);
  }
}

TEST_CASE("an instance that becomes half as fast is followed within a hundred prefills") {
  std::mt19937_64 random(2);
  const Law before{5000, 60, 0.004}, after{10'000, 120, 0.008};
  CostModel model(20'000.0, Micros(200));
  teach(model, before, 300, 0.0, random);
  teach(model, after, 200, 0.0, random);
  check_law(model, after, 0.06);
}

TEST_CASE("a prior that is a hundred times too fast is corrected in spite of the damping of surprises") {
  std::mt19937_64 random(3);
  const Law law{5000, 1000, 0.0};
  CostModel model(100'000.0, Micros(200));
  teach(model, law, 200, 0.0, random);
  check_law(model, law, 0.05);
}

TEST_CASE("one stalled prefill costs at most what four ordinary ones would teach") {
  std::mt19937_64 random(4);
  const Law law{5000, 60, 0.0};
  CostModel model(16'000.0, Micros(200));
  teach(model, law, 100, 0.0, random);
  model.learn(Tokens(1024), Tokens(1024), Micros(60'000'000));
  CHECK(model.cost().micros(Tokens(1024)) < 1.25 * law.micros(1024));
}

TEST_CASE("whatever is measured, the time is at least the overhead and grows with the tokens") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    CostModel model(1000.0 * double(1 + random() % 100), Micros(200));
    for (int i = 0; i < 60; ++i) {
      const auto whole = Tokens(std::int64_t(random() % 5000));
      const auto computed = Tokens(std::int64_t(random() % 6000) - 500);
      model.learn(whole, computed, Micros(std::int64_t(random() % 1'000'000) - 1000));
      double last = 200.0;
      for (std::int64_t n = 0; n <= 1 << 17; n = 2 * n + 1) {
        const double micros = model.cost().micros(Tokens(n));
        REQUIRE(std::isfinite(micros));
        REQUIRE(micros >= last);
        last = micros;
      }
    }
  }
}

TEST_CASE("what the prefix cache spares is taken off the cost of a whole prompt") {
  CostModel model(10'000.0, Micros(200));
  // Each prompt has 1,000 tokens, 250 of which must be computed at 100 us each.
  for (int i = 0; i < 300; ++i) model.learn(Tokens(1000), Tokens(250), Micros(25'200));
  CHECK(model.cost().micros(Tokens(1000)) == doctest::Approx(25'200.0).epsilon(0.05));
}
