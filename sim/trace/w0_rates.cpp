// W0's days. Constants are W0's definition; docs/decisions.md says where they come from.
#include "sim/trace/w0_rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace sangam::sim {
namespace {

using Hours = std::array<double, 24>;  // Each value holds in the middle of its hour.

constexpr Hours kOffice{.25, .15, .10, .08, .08, .09, .15, .32, .75, 1.55, 2.15, 1.95,
                        1.35, 1.50, 1.85, 1.95, 1.90, 1.65, 1.25, 1.15, 1.15, 1.05, .80, .45};
constexpr Hours kEvening{.75, .45, .28, .18, .15, .15, .22, .40, .65, .90, 1.10, 1.15,
                         1.30, 1.15, 1.05, 1.10, 1.15, 1.25, 1.45, 1.75, 2.05, 2.10, 1.80, 1.25};
constexpr Hours kNight{2.6, 3, 3, 2.8, 2.4, 1.6, .8, .5, .4, .4, .4, .4, .4, .4, .4, .4, .4, .4, .4, .4, .4, .5, .8, 1.6};

constexpr int kSteadyPhaseRanks = 3;  // The largest apps make the day's shape.
constexpr double kPhaseSd = 900.0;    // Seconds; clipped at twice that.
constexpr double kNoiseTau = 300.0;   // Seconds after which noise is forgotten by a factor of e.
constexpr int kCalmRanks = 7;         // Whose noise is smaller.
constexpr double kCalmNoise = 0.12;   // Standard deviations of the logarithm of the rate.
constexpr double kOtherNoise = 0.30;
constexpr double kBurstsMean = 4.0;
constexpr int kBurstsMin = 2;
constexpr double kHoldSigma = 0.6;
constexpr double kDecayTau = 90.0;        // Seconds.
constexpr double kDecayEnd = 20 * kDecayTau;  // Less than 1e-7 is left then.

double between_hours(const Hours& hours, double second) {
  double hour = std::fmod(second / 3600.0 - 0.5, 24.0);
  if (hour < 0.0) hour += 24.0;
  const int before = int(hour) % 24;
  const double part = hour - std::floor(hour);
  return hours[std::size_t(before)] * (1.0 - part) + hours[std::size_t((before + 1) % 24)] * part;
}

/// A second whose density follows the curve, by rejection.
double draw_start(DayCurve curve, double phase, Random& random) {
  constexpr double kCurveMax = 3.0;
  while (true) {
    const double second = random.uniform(0.0, kDaySeconds);
    if (random.uniform() * kCurveMax < curve_at(curve, second - phase)) return second;
  }
}

std::vector<RateBurst> draw_bursts(DayCurve curve, double phase, double hold_median, Random& random) {
  std::vector<RateBurst> bursts(std::size_t(std::max(kBurstsMin, random.poisson(kBurstsMean))));
  for (auto& burst : bursts) {
    burst.start = draw_start(curve, phase, random);
    burst.magnification = random.uniform(5.5, 10.0);
    burst.rise = random.uniform(2.0, 8.0);
    burst.hold = hold_median * std::exp(kHoldSigma * random.normal());
  }
  std::sort(bursts.begin(), bursts.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  return bursts;
}

/// The magnification of each second; nothing goes on from one day into the next.
std::vector<float> magnifications(std::span<const RateBurst> bursts) {
  std::vector<float> factors(kDaySeconds, 1.0F);
  for (const auto& burst : bursts) {
    const double last = std::min<double>(kDaySeconds, burst.start + burst.rise + burst.hold + kDecayEnd);
    for (int second = int(burst.start); second < int(last); ++second) {
      auto& factor = factors[std::size_t(second)];
      factor = std::max(factor, float(magnification_at(burst, second + 0.5)));
    }
  }
  return factors;
}

}  // namespace

double curve_at(DayCurve curve, double second) {
  switch (curve) {
    case DayCurve::office: return between_hours(kOffice, second);
    case DayCurve::evening: return between_hours(kEvening, second);
    case DayCurve::night: return between_hours(kNight, second);
    case DayCurve::flat: break;
  }
  return 1.0 + 0.12 * std::sin(2.0 * std::numbers::pi * (second / 3600.0 - 9.0) / 24.0);
}

double magnification_at(const RateBurst& burst, double second) {
  const double since = second - burst.start;
  if (since < 0.0) return 1.0;
  const double more = burst.magnification - 1.0;
  if (since < burst.rise) return 1.0 + more * since / burst.rise;
  const double after = since - burst.rise - burst.hold;
  return after < 0.0 ? burst.magnification : 1.0 + more * std::exp(-after / kDecayTau);
}

AppDay draw_day(const App& app, int rank, Random& random, double burst_hold) {
  AppDay day;
  if (rank > kSteadyPhaseRanks) day.phase = kPhaseSd * std::clamp(random.normal(), -2.0, 2.0);
  if (app.bursts) day.bursts = draw_bursts(app.curve, day.phase, burst_hold, random);
  day.rate = magnifications(day.bursts);
  // Ornstein-Uhlenbeck, exact from one second to the next.
  const double sd = rank <= kCalmRanks ? kCalmNoise : kOtherNoise;
  const double kept = std::exp(-1.0 / kNoiseTau);
  const double fresh = sd * std::sqrt(1.0 - kept * kept);
  double noise = sd * random.normal();
  double total = 0.0;
  for (int second = 0; second < kDaySeconds; ++second) {
    auto& rate = day.rate[std::size_t(second)];
    rate *= float(curve_at(app.curve, second + 0.5 - day.phase) * std::exp(noise));
    total += double(rate);
    noise = kept * noise + fresh * random.normal();
  }
  for (auto& rate : day.rate) rate = float(double(rate) / total);
  return day;
}

}  // namespace sangam::sim
