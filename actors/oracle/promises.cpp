// Groups of requests, and the analytic attainment over them.
#include "actors/oracle/promises.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/oracle/waiting.hpp"

namespace sangam {
namespace {

constexpr std::size_t kRemembered = 64;
constexpr std::size_t kGroups = 8;
constexpr double kStepSpread = 0.25;  // Deviation of log step time around its mean, ours.

double in_seconds(Millis time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Promises::Promises(Millis ttft, Millis tpot) : assumed_{0.0, in_seconds(ttft), in_seconds(tpot)} {}

void Promises::remember(const ServedRequest& request) {
  const Promise promise{double(request.input.count()), in_seconds(request.ttft_slo), in_seconds(request.tpot_slo)};
  if (latest_.size() < kRemembered) return latest_.push_back(promise);
  latest_[next_] = promise;
  next_ = (next_ + 1) % kRemembered;
}

PromiseGroup Promises::median() const {
  if (latest_.empty()) return {1.0, 0.0, assumed_.ttft, assumed_.tpot};
  const auto middle = [this](double Promise::* field) {
    std::vector<double> values;
    for (const Promise& promise : latest_) values.push_back(promise.*field);
    std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  return {1.0, middle(&Promise::input), middle(&Promise::ttft), middle(&Promise::tpot)};
}

std::vector<PromiseGroup> Promises::groups(const WorkerCosts& costs, double input_mean) const {
  struct Ranked {
    double slack;
    PromiseGroup group;
  };
  std::vector<Ranked> ranked;
  const auto rank = [&](const Promise& p) {
    const double slack = p.ttft > 0.0 ? p.ttft - costs.prefill(p.input) : std::numeric_limits<double>::infinity();
    ranked.push_back({slack, {1.0, p.input, p.ttft, p.tpot}});
  };
  if (latest_.empty()) rank({input_mean, assumed_.ttft, assumed_.tpot});
  for (const Promise& promise : latest_) rank(promise);
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.slack < b.slack; });
  std::vector<PromiseGroup> groups;
  const std::size_t count = std::min(kGroups, ranked.size());
  for (std::size_t g = 0; g < count; ++g) {
    const std::size_t begin = ranked.size() * g / count;
    const std::size_t end = ranked.size() * (g + 1) / count;
    PromiseGroup group;
    double with_ttft = 0.0;
    double with_tpot = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      const PromiseGroup& one = ranked[i].group;
      group.input += one.input / double(end - begin);
      group.ttft += one.ttft;
      group.tpot += one.tpot;
      with_ttft += one.ttft > 0.0 ? 1.0 : 0.0;
      with_tpot += one.tpot > 0.0 ? 1.0 : 0.0;
    }
    group.share = double(end - begin) / double(ranked.size());
    group.ttft /= std::max(1.0, with_ttft);
    group.tpot /= std::max(1.0, with_tpot);
    groups.push_back(group);
  }
  return groups;
}

namespace {

/// Share of a group's later tokens whose step is short enough.
double in_step(const PromiseGroup& group, const OperatingPoint& point) {
  if (group.tpot <= 0.0) return 1.0;
  return normal_cdf(std::log(std::max(1e-6, group.tpot) / std::max(1e-6, point.step)) / kStepSpread);
}

}  // namespace

/// What the workers do not carry piles up.
double lawful_decode(const std::vector<PromiseGroup>& groups, const OperatingPoint& point) {
  double attained = 0.0;
  for (const PromiseGroup& group : groups) attained += group.share * in_step(group, point);
  return attained * point.carried;
}

Attainment lawful_attainment(const std::vector<PromiseGroup>& groups, const WorkerCosts& costs,
                             const OperatingPoint& point, double requests_per_second, int workers) {
  const BurstyQueue queue({requests_per_second, point.service, point.service_scv}, point.peakedness, workers);
  Attainment attainment{0.0, 0.0};
  for (const PromiseGroup& group : groups) {
    const double patience = group.ttft - point.stretch * costs.prefill(group.input, point.chunk_extra);
    const double first = group.ttft > 0.0 ? queue.share_served(patience) : 1.0;
    const double later = in_step(group, point);
    attainment.prefill += group.share * first;
    attainment.decode += group.share * later * (group.tpot > 0.0 ? first : 1.0);
  }
  return attainment;
}

}  // namespace sangam
