// Queueing formulas against closed forms of the literature and against queues that are played through.
#include "actors/oracle/waiting.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <tuple>
#include <vector>

using namespace sangam;

namespace {

double share_served(const ServerLoad& load, int servers, double patience) {
  return ImpatientQueue(load, servers).share_served(patience);
}

/// Plays first come, first served, on `servers`; who would wait longer than `patience` leaves at once.
double played_share(double rate, int servers, double patience, const std::function<double(std::mt19937_64&)>& service) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap(rate);
  std::vector<double> free_at(std::size_t(servers), 0.0);
  double now = 0.0;
  int served = 0;
  constexpr int kRequests = 400'000;
  for (int i = 0; i < kRequests; ++i) {
    now += gap(random);
    auto first = std::min_element(free_at.begin(), free_at.end());
    const double start = std::max(now, *first);
    if (start - now > patience) continue;
    *first = start + service(random);
    ++served;
  }
  return double(served) / kRequests;
}

/// The same where requests come `batch` at a time.
double played_batches(double rate, int batch, int servers, double patience) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap(rate / batch);
  std::vector<double> free_at(std::size_t(servers), 0.0);
  double now = 0.0;
  int served = 0;
  constexpr int kBatches = 60'000;
  for (int i = 0; i < kBatches; ++i) {
    now += gap(random);
    for (int k = 0; k < batch; ++k) {
      auto first = std::min_element(free_at.begin(), free_at.end());
      const double start = std::max(now, *first);
      if (start - now > patience) continue;
      *first = start + std::exponential_distribution<double>(1.0)(random);
      ++served;
    }
  }
  return double(served) / (double(kBatches) * batch);
}

double exponential(std::mt19937_64& random) { return std::exponential_distribution<double>(1.0)(random); }

}  // namespace

TEST_CASE("without patience the share is what Erlang's loss formula leaves") {
  // Offered load 2 on 3 servers: (8/6) / (1 + 2 + 2 + 8/6) = 4/19 are lost.
  CHECK(share_served({2.0, 1.0, 1.0}, 3, 0.0) == doctest::Approx(15.0 / 19.0));
  CHECK(share_served({1.0, 1.0, 1.0}, 1, 0.0) == doctest::Approx(0.5));
}

TEST_CASE("one exponential server with a limit to waiting loses what Barrer's formula says") {
  for (const double rho : {0.3, 0.9, 1.4}) {
    for (const double patience : {0.1, 1.0, 6.0}) {
      CAPTURE(rho);
      CAPTURE(patience);
      const double decay = std::exp(-(1.0 - rho) * patience);
      const double lost = (1.0 - rho) * rho * decay / (1.0 - rho * rho * decay);
      CHECK(share_served({rho, 1.0, 1.0}, 1, patience) == doctest::Approx(1.0 - lost).epsilon(1e-9));
    }
  }
}

TEST_CASE("exponential service on several servers is exact") {
  for (const double rate : {2.4, 3.0, 4.5}) {
    for (const double patience : {0.2, 1.0}) {
      CAPTURE(rate);
      CAPTURE(patience);
      CHECK(std::abs(share_served({rate, 1.0, 1.0}, 3, patience) - played_share(rate, 3, patience, exponential)) <
            0.004);
    }
  }
}

TEST_CASE("other service times are met within two points") {
  for (const double scv : {0.0, 0.3, 3.0}) {
    const auto service = [&](std::mt19937_64& random) {
      return scv == 0.0 ? 1.0 : std::gamma_distribution<double>(1.0 / scv, scv)(random);
    };
    for (const int servers : {1, 4, 8}) {
      for (const double rho : {0.5, 0.8, 0.95, 1.2}) {
        for (const double patience : {0.2, 1.0, 4.0}) {
          CAPTURE(scv);
          CAPTURE(servers);
          CAPTURE(rho);
          CAPTURE(patience);
          const double rate = rho * servers;
          const double played = played_share(rate, servers, patience, service);
          CHECK(std::abs(share_served({rate, 1.0, scv}, servers, patience) - played) < 0.02);
        }
      }
    }
  }
}

TEST_CASE("the share grows with servers and patience and stays a share, however extreme the load") {
  for (const double rate : {1e-9, 0.5, 50.0, 1e6}) {
    double before = 0.0;
    for (int servers = 1; servers <= 64; ++servers) {
      const double share = share_served({rate, 0.7, 2.0}, servers, 3.0);
      CHECK(share >= before - 1e-12);
      CHECK(share <= 1.0);
      before = share;
    }
  }
  CHECK(share_served({5.0, 1.0, 1.0}, 2, 1e6) == doctest::Approx(0.4));
  CHECK(share_served({1.0, 1.0, 1.0}, 2, -0.1) == 0.0);
  CHECK(share_served({0.0, 1.0, 1.0}, 1, 0.0) == 1.0);
}

TEST_CASE("isotonic regression is the best non-decreasing sequence") {
  const std::vector<double> values{1.0, 3.0, 2.0, 2.0, 5.0, 4.0};
  const std::vector<double> weights{1.0, 1.0, 1.0, 2.0, 1.0, 3.0};
  const std::vector<double> fitted = isotonic(values, weights);
  const std::vector<double> expected{1.0, 2.25, 2.25, 2.25, 4.25, 4.25};
  REQUIRE(fitted.size() == expected.size());
  for (std::size_t i = 0; i < fitted.size(); ++i) CHECK(fitted[i] == doctest::Approx(expected[i]));

  // Against a search over all non-decreasing sequences on a grid.
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> y(4);
    std::vector<double> w(4);
    for (double& v : y) v = double(random() % 11) / 10.0;
    for (double& v : w) v = 1.0 + double(random() % 3);
    const auto loss = [&](const std::vector<double>& x) {
      double sum = 0.0;
      for (std::size_t i = 0; i < 4; ++i) sum += w[i] * (x[i] - y[i]) * (x[i] - y[i]);
      return sum;
    };
    double best = 1e9;
    for (int a = 0; a <= 20; ++a) {
      for (int b = a; b <= 20; ++b) {
        for (int c = b; c <= 20; ++c) {
          for (int d = c; d <= 20; ++d) best = std::min(best, loss({a / 20.0, b / 20.0, c / 20.0, d / 20.0}));
        }
      }
    }
    const std::vector<double> x = isotonic(y, w);
    CHECK(std::is_sorted(x.begin(), x.end()));
    CHECK(loss(x) <= best + 1e-12);
  }
}

TEST_CASE("requests that come at random are no burst") {
  for (const int servers : {1, 3, 10}) {
    CHECK(BurstyQueue({2.0, 1.0, 1.0}, 1.0, servers).share_served(0.5) == share_served({2.0, 1.0, 1.0}, servers, 0.5));
  }
}

TEST_CASE("of requests that come together more are late, about as many as when it is played") {
  for (const auto& [rate, batch, servers] : {std::tuple(4.0, 4, 8), std::tuple(4.0, 4, 12), std::tuple(6.0, 3, 9), std::tuple(10.0, 5, 20)}) {
    CAPTURE(rate);
    CAPTURE(batch);
    CAPTURE(servers);
    const double played = played_batches(rate, batch, servers, 0.2);
    const double bursty = BurstyQueue({rate, 1.0, 1.0}, batch, servers).share_served(0.2);
    CHECK(std::abs(bursty - played) < 0.06);
    // With much room the approximation is on the safe side, and never are bursts taken for requests at random.
    CHECK(bursty < share_served({rate, 1.0, 1.0}, servers, 0.2) - 0.01);
  }
}

TEST_CASE("more servers serve no fewer, also between whole numbers of bursts") {
  double before = 0.0;
  for (int servers = 1; servers <= 20; ++servers) {
    const double now = BurstyQueue({5.0, 1.0, 0.5}, 3.7, servers).share_served(0.3);
    CHECK(now >= before);
    before = now;
  }
  CHECK(before > 0.95);
}
