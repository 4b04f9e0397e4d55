// W0's arrivals. Poisson arrivals of which exactly so many are kept at random are the same in law as so many
// independent draws from the day's rate, which is how they are made here.
#include "sim/trace/w0.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"
#include "sim/trace/random.hpp"
#include "sim/trace/w0_apps.hpp"
#include "sim/trace/w0_lengths.hpp"
#include "sim/trace/w0_rates.hpp"

namespace sangam::sim {
namespace {

/// Seeds of what is drawn independently of each other (a step of SplitMix64; Steele et al., 2014).
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t mixed = seed + (stream + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

constexpr std::uint64_t kArrivalStream = 1000;  // Apps have the streams from 0: their day; from 2000: their lengths.
constexpr std::uint64_t kLengthStream = 2000;

std::vector<std::vector<float>> rates(std::span<const App> apps, std::uint64_t seed, double burst_hold) {
  std::vector<std::vector<float>> days;
  for (const auto& app : apps) {
    Random random(seed_of(seed, days.size()));
    days.push_back(draw_day(app, int(days.size()) + 1, random, burst_hold).rate);
    for (auto& rate : days.back()) rate *= float(app.request_share);
  }
  return days;
}

/// `count` uniform draws from [0, 1) in ascending order, as exponential gaps make them.
std::vector<double> sorted_uniforms(std::size_t count, Random& random) {
  std::vector<double> draws(count);
  double sum = 0.0;
  for (auto& draw : draws) draw = sum += random.exponential();
  sum += random.exponential();
  for (auto& draw : draws) draw /= sum;
  return draws;
}

/// (second of the day, app) of each request: one walk through all rates, with the draws at their side.
template <class Take>
void for_each_arrival(const std::vector<std::vector<float>>& rates, std::span<const double> draws, Take take) {
  double total = 0.0;
  for (const auto& day : rates) {
    for (const float rate : day) total += double(rate);
  }
  double passed = 0.0;
  auto draw = draws.begin();
  for (int second = 0; second < kDaySeconds; ++second) {
    for (std::uint32_t app = 0; app < rates.size(); ++app) {
      passed += double(rates[app][std::size_t(second)]);
      for (; draw != draws.end() && *draw * total < passed; ++draw) take(second, app);
    }
  }
  for (; draw != draws.end(); ++draw) take(kDaySeconds - 1, std::uint32_t(rates.size() - 1));  // Rounding's last crumb.
}

}  // namespace

Trace w0(std::uint64_t seed, const W0Options& options) {
  SANGAM_ASSERT(options.burst_hold_s > 0.0, options.burst_hold_s);
  const std::vector<App> apps = options.first_share ? w0_apps_with(*options.first_share) : w0_apps();
  Random arrivals(seed_of(seed, kArrivalStream));
  Trace trace;
  std::vector<LengthPair> lengths;
  std::vector<Random> length_draws;
  for (const auto& app : apps) {
    length_draws.emplace_back(seed_of(seed, kLengthStream + trace.apps.size()));
    lengths.emplace_back(app);
    trace.apps.push_back(app.name);
  }
  const double micros_per_second = options.minutes * 60e6 / kDaySeconds;
  const auto draws = sorted_uniforms(options.requests, arrivals);
  trace.requests.reserve(options.requests);
  for_each_arrival(rates(apps, seed, options.burst_hold_s), draws, [&](int second, std::uint32_t app) {
    const Micros arrival(std::int64_t((second + arrivals.uniform()) * micros_per_second));
    const auto [input, output] = lengths[app].draw(length_draws[app]);
    trace.requests.push_back({arrival, app, input, output});
  });
  std::stable_sort(trace.requests.begin(), trace.requests.end(),
                   [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
  return trace;
}

}  // namespace sangam::sim
