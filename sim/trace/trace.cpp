// Scaling and cutting of traces.
#include "sim/trace/trace.hpp"

#include <algorithm>
#include <cmath>

#include "sim/trace/random.hpp"

namespace sangam::sim {
namespace {

constexpr double kRateMax = 1000.0;
constexpr double kLengthMax = 1000.0;
constexpr double kSpeedMax = 1e6;
constexpr Micros kSecond = Seconds(1);

bool within(double value, double most) { return value > 0.0 && value <= most; }

Error refuse(const char* what, double value, double most) {
  return make_error(ErrorCode::invalid_input, std::string(what) + " " + std::to_string(value) + ": must be above 0 and at most " +
                                                  std::to_string(std::int64_t(most)));
}

Tokens times(Tokens tokens, double factor) {
  return Tokens(std::max<std::int64_t>(1, std::llround(double(tokens.count()) * factor)));
}

void sort_by_arrival(std::vector<TraceRequest>& requests) {
  std::stable_sort(requests.begin(), requests.end(),
                   [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
}

}  // namespace

Result<Trace> scaled(Trace trace, const TraceScaling& scaling) {
  if (!within(scaling.rate, kRateMax)) return refuse("rate", scaling.rate, kRateMax);
  if (!within(scaling.speed, kSpeedMax)) return refuse("speed", scaling.speed, kSpeedMax);
  if (!within(scaling.length, kLengthMax)) return refuse("length", scaling.length, kLengthMax);
  Random random(scaling.seed);
  std::vector<TraceRequest> all;
  all.reserve(std::size_t(double(trace.requests.size()) * scaling.rate) + 1);
  const int whole = int(scaling.rate);
  const double part = scaling.rate - whole;
  for (const auto& request : trace.requests) {
    const int copies = whole + (random.uniform() < part ? 1 : 0);
    if (copies > 0) all.push_back(request);
    for (int copy = 1; copy < copies; ++copy) {
      all.push_back(request);
      const Micros second = request.arrival - request.arrival % kSecond;
      all.back().arrival = second + Micros(std::int64_t(random.uniform() * double(kSecond.count())));
    }
  }
  for (auto& request : all) {
    request.arrival = Micros(std::int64_t(double(request.arrival.count()) / scaling.speed));
    request.input = times(request.input, scaling.length);
    request.output = times(request.output, scaling.length);
  }
  sort_by_arrival(all);
  trace.requests = std::move(all);
  return trace;
}

Trace between(Trace trace, Micros from, Micros until) {
  std::erase_if(trace.requests, [&](const auto& request) { return request.arrival < from || request.arrival >= until; });
  for (auto& request : trace.requests) request.arrival -= from;
  return trace;
}

Trace limited(Trace trace, std::size_t count) {
  if (trace.requests.size() > count) trace.requests.resize(count);
  return trace;
}

}  // namespace sangam::sim
