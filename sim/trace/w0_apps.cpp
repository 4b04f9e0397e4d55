// The table of W0's applications.
#include "sim/trace/w0_apps.hpp"

#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>

#include "messages/vocabulary/assert.hpp"

namespace sangam::sim {
namespace {

struct Row {
  std::string_view model;  ///< Its name begins with the devices that an instance spans.
  DayCurve curve;
  bool bursts;
  LengthSpread input;
  LengthSpread output;
};

constexpr auto office = DayCurve::office;
constexpr auto evening = DayCurve::evening;
constexpr auto flat = DayCurve::flat;
constexpr auto night = DayCurve::night;
constexpr bool bursty = true;
constexpr bool steady = false;

// By rank of requests. Means make the shares of tokens fall as (rank + 6)^-1.8797, in an order that is only loosely
// that of requests; spreads are of the size that ServeGen (2025) finds at the clients of a production service.
constexpr Row kRows[] = {
    {"tp1-m5", office, steady, {165.2, 0.07}, {7.9, 0.40}},
    {"tp1-m0", office, steady, {440.9, 1.24}, {35.1, 0.57}},
    {"tp4-m0", evening, steady, {541.4, 1.09}, {34.2, 1.17}},
    {"tp1-m0", office, bursty, {328.4, 0.73}, {7.1, 0.05}},
    {"tp16-m0", office, steady, {755.5, 0.38}, {3.2, 1.38}},
    {"tp1-m1", flat, bursty, {396.8, 0.12}, {20.1, 0.14}},
    {"tp1-m0", evening, steady, {888.5, 0.35}, {35.2, 0.22}},
    {"tp4-m1", office, bursty, {833.3, 0.30}, {37.2, 0.53}},
    {"tp1-m0", office, bursty, {908.8, 0.58}, {34.8, 1.50}},
    {"tp1-m1", evening, steady, {293.8, 0.05}, {60.5, 0.19}},
    {"tp4-m0", office, bursty, {2012.3, 0.06}, {441.8, 0.26}},
    {"tp1-m1", office, bursty, {796.3, 0.05}, {63.6, 0.79}},
    {"tp1-m0", flat, steady, {1243.0, 0.05}, {100.0, 0.13}},
    {"tp16-m0", office, steady, {1593.7, 0.14}, {137.7, 1.03}},
    {"tp1-m2", office, bursty, {892.6, 1.32}, {70.3, 1.39}},
    {"tp4-m1", evening, steady, {1742.2, 0.98}, {96.0, 0.54}},
    {"tp1-m1", office, bursty, {1709.2, 0.12}, {180.5, 0.64}},
    {"tp1-m4", office, bursty, {1233.4, 0.94}, {65.0, 0.28}},
    {"tp4-m0", flat, steady, {1225.6, 0.34}, {463.4, 0.34}},
    {"tp1-m0", evening, steady, {1783.6, 0.05}, {253.7, 0.07}},
    {"tp1-m3", office, bursty, {822.9, 0.05}, {13.9, 0.51}},
    {"tp16-m0", office, steady, {1174.4, 0.76}, {90.0, 1.03}},
    {"tp1-m0", office, bursty, {1980.9, 0.57}, {46.3, 0.77}},
    {"tp4-m0", evening, steady, {1204.3, 0.13}, {409.4, 0.83}},
    {"tp1-m3", night, steady, {520.8, 0.06}, {3.3, 0.98}},
    {"tp1-m3", office, bursty, {1034.2, 0.27}, {20.0, 1.08}},
    {"tp4-m1", flat, steady, {1821.7, 0.58}, {36.0, 1.95}},
    {"tp1-m2", office, bursty, {837.2, 0.05}, {67.6, 0.21}},
    {"tp1-m1", evening, steady, {607.1, 0.74}, {163.4, 0.57}},
    {"tp4-m0", office, steady, {2400.8, 0.06}, {558.8, 0.15}},
    {"tp16-m0", office, steady, {5258.3, 0.21}, {440.4, 0.40}},
    {"tp1-m3", flat, steady, {1651.6, 0.05}, {82.7, 0.09}},
    {"tp1-m0", evening, bursty, {1238.3, 0.05}, {14.9, 0.34}},
    {"tp4-m0", office, steady, {3925.7, 0.05}, {233.9, 0.26}},
    {"tp1-m5", office, steady, {2919.6, 0.07}, {35.3, 0.62}},
    {"tp1-m4", evening, steady, {1782.3, 0.09}, {49.9, 0.23}},
    {"tp4-m1", office, steady, {4297.4, 0.57}, {133.3, 0.60}},
    {"tp1-m0", office, bursty, {3200.5, 2.22}, {543.4, 2.11}},
    {"tp1-m1", flat, steady, {1777.1, 0.05}, {252.8, 0.07}},
    {"tp1-m1", night, steady, {1345.0, 0.60}, {46.5, 0.43}},
    {"tp4-m0", evening, steady, {3364.7, 0.05}, {635.9, 0.28}},
    {"tp1-m2", office, bursty, {2834.7, 0.57}, {89.0, 0.60}},
    {"tp1-m4", office, steady, {3539.6, 0.95}, {697.1, 0.33}},
    {"tp16-m0", office, steady, {1960.8, 0.23}, {266.4, 0.69}},
    {"tp1-m4", evening, steady, {1740.3, 1.34}, {22.3, 1.37}},
    {"tp4-m1", flat, steady, {1547.1, 0.12}, {544.6, 0.20}},
    {"tp1-m2", office, bursty, {1354.6, 0.05}, {430.4, 0.07}},
    {"tp1-m1", night, steady, {2775.2, 0.07}, {33.6, 0.62}},
    {"tp1-m0", office, steady, {3335.0, 0.05}, {198.7, 0.26}},
    {"tp4-m0", evening, steady, {2286.9, 0.43}, {90.7, 0.58}},
    {"tp1-m2", flat, steady, {4758.4, 0.76}, {653.7, 0.50}},
    {"tp1-m0", office, steady, {4539.2, 2.44}, {18.1, 2.84}},
    {"tp4-m1", night, steady, {5211.4, 0.21}, {436.5, 0.40}},
    {"tp1-m5", evening, steady, {2954.1, 2.22}, {478.6, 2.11}},
    {"tp1-m2", office, bursty, {4154.7, 0.95}, {821.7, 0.33}},
    {"tp4-m0", flat, steady, {2616.6, 0.05}, {123.2, 0.14}},
    {"tp16-m0", office, steady, {6877.6, 0.78}, {436.6, 0.57}},
    {"tp1-m2", office, steady, {3737.8, 0.05}, {174.2, 0.14}},
    {"tp1-m0", evening, steady, {2840.7, 0.09}, {79.6, 0.23}},
    {"tp4-m0", office, steady, {4902.2, 0.78}, {310.6, 0.57}},
    {"tp1-m1", flat, steady, {3301.7, 0.43}, {130.6, 0.58}},
    {"tp1-m3", office, steady, {4332.4, 0.44}, {82.2, 0.52}},
};

int devices_of(std::string_view model) {
  if (model.starts_with("tp16")) return 16;
  return model.starts_with("tp4") ? 4 : 1;
}

/// By Zipf's and Mandelbrot's law: they fall as (rank + shift)^-steepness.
std::vector<double> request_shares(double shift, double steepness) {
  std::vector<double> shares;
  for (std::size_t rank = 1; rank <= std::size(kRows); ++rank) shares.push_back(std::pow(double(rank) + shift, -steepness));
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= total;
  return shares;
}

/// Where `grows`, which rises, comes to `value`.
template <class Grows>
double inverse(Grows grows, double value, double low, double high) {
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2.0;
    (grows(middle) < value ? low : high) = middle;
  }
  return low;
}

/// With this shift, and as steep as makes the first 7 of 62, 12 %, ask 80 % of all.
std::vector<double> published_shares(double shift) {
  const auto first_seven = [&](double steepness) {
    const auto shares = request_shares(shift, steepness);
    return std::accumulate(shares.begin(), shares.begin() + 7, 0.0);
  };
  return request_shares(shift, inverse(first_seven, 0.8, 0.0, 20.0));
}

std::vector<App> make_apps() {
  std::vector<App> apps;
  double total = 0.0;
  for (const auto& row : kRows) {
    const int rank = int(apps.size()) + 1;
    const double weight = std::pow(rank + 3.0, -2.4179);  // As published_shares(3) has it, rounded.
    const std::string name = (rank < 10 ? "app0" : "app") + std::to_string(rank);
    apps.push_back({name, std::string(row.model), devices_of(row.model), weight, row.curve, row.bursts, row.input, row.output});
    total += weight;
  }
  for (auto& app : apps) app.request_share /= total;
  return apps;
}

}  // namespace

const std::vector<App>& w0_apps() {
  static const std::vector<App> apps = make_apps();
  return apps;
}

std::vector<App> w0_apps_with(double first_share) {
  SANGAM_ASSERT(first_share >= kFirstShareLeast && first_share <= kFirstShareMost, first_share);
  // A larger shift makes the head flatter; the two here give 0.52 and 0.24.
  const double shift = inverse([](double s) { return -published_shares(s).front(); }, -first_share, -0.6, 12.0);
  const std::vector<double> shares = published_shares(shift);
  std::vector<App> apps = w0_apps();
  for (std::size_t i = 0; i < apps.size(); ++i) {
    const double longer = apps[i].request_share / shares[i];
    apps[i].request_share = shares[i];
    apps[i].input.mean *= longer;
    apps[i].output.mean *= longer;
  }
  return apps;
}

}  // namespace sangam::sim
