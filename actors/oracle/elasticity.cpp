// Curves over the number of workers, and observations as corrections of the law.
#include "actors/oracle/elasticity.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "actors/oracle/waiting.hpp"

namespace sangam {
namespace {

constexpr double kShareMin = 1e-4;      // Shares are kept so far from 0 and 1.
constexpr double kCorrectionMax = 4.0;  // Of what is learned, in logits: the law always has a say.
constexpr double kScale = 0.5;          // Logits that the laws are believed to be off.
constexpr double kPseudo = 4.0;         // Requests that the law counts for where an observation is linearised.
constexpr std::size_t kAsked = 5;       // Numbers of workers at which the process is asked.

double kept_apart(double share) { return std::clamp(share, kShareMin, 1.0 - kShareMin); }

GaussianProcessOptions process_options(const OracleOptions& options, std::uint64_t seed) {
  GaussianProcessOptions process;
  process.inputs = 8;
  process.points_max = options.points_max;
  process.fit_points_max = options.fit_points_max;
  process.scale = kScale;
  process.seed = seed;
  return process;
}

std::vector<double> with_law(std::vector<double> inputs, double lawful) {
  inputs.push_back(logit(kept_apart(lawful)));
  return inputs;
}

/// From where the law sees a chance to where it sees no more to gain, evenly in the logarithm, and the present one.
std::vector<int> numbers_to_ask(const std::vector<double>& lawful, int now) {
  int first = 1;
  int last = int(lawful.size());
  while (first < last && lawful[std::size_t(first) - 1] < 0.02) ++first;
  while (last > first && lawful[std::size_t(last) - 2] > 1.0 - kShareMin) --last;
  std::set<int> numbers;
  for (std::size_t i = 0; i < kAsked; ++i) {
    const double part = double(i) / double(kAsked - 1);
    numbers.insert(int(std::lround(first * std::pow(double(last) / first, part))));
  }
  if (now >= first && now <= last) numbers.insert(now);
  return {numbers.begin(), numbers.end()};
}

struct Correction {
  double mean = 0.0;
  double deviation = 0.0;
};

}  // namespace

Elasticity::Elasticity(const OracleOptions& options, std::uint64_t seed)
    : options_(options),
      processes_{GaussianProcess(process_options(options, seed)), GaussianProcess(process_options(options, seed + 1))} {}

AttainmentCurves Elasticity::foresee(const std::function<std::vector<double>(int workers)>& inputs, const Law& law,
                                     int now) const {
  std::vector<double> prefill;
  std::vector<double> decode;
  Attainment last{0.0, 0.0};
  for (std::size_t m = 1; m <= options_.instances_max; ++m) {
    if (last.prefill < kCertainAttainment || last.decode < kCertainAttainment) last = law(int(m));
    prefill.push_back(last.prefill);
    decode.push_back(last.decode);
  }
  return {bounds(prefill, 0, inputs, now), bounds(decode, 1, inputs, now)};
}

std::vector<double> Elasticity::bounds(const std::vector<double>& lawful, std::size_t process,
                                       const std::function<std::vector<double>(int workers)>& inputs, int now) const {
  // Nothing is late where no deadline is.
  if (lawful.front() >= 1.0) return lawful;
  const std::vector<int> numbers = numbers_to_ask(lawful, now);
  std::vector<Correction> corrections;
  for (const int m : numbers) {
    const GaussianProcess::Prediction p =
        processes_[process].predict(with_law(inputs(m), lawful[std::size_t(m) - 1]));
    corrections.push_back({std::clamp(p.mean, -kCorrectionMax, kCorrectionMax), calibrated_[process].factor() * std::sqrt(p.variance)});
  }
  std::vector<double> means;
  std::vector<double> deviations;
  std::size_t next = 0;
  for (std::size_t i = 0; i < lawful.size(); ++i) {
    const int m = int(i) + 1;
    while (next < numbers.size() && numbers[next] < m) ++next;
    Correction c = corrections[std::min(next, numbers.size() - 1)];
    if (next > 0 && next < numbers.size()) {
      const double part = std::log(double(m) / numbers[next - 1]) / std::log(double(numbers[next]) / numbers[next - 1]);
      const Correction& before = corrections[next - 1];
      c = {before.mean + part * (c.mean - before.mean), before.deviation + part * (c.deviation - before.deviation)};
    }
    means.push_back(logistic(logit(kept_apart(lawful[i])) + c.mean));
    deviations.push_back(c.deviation);
  }
  std::vector<double> curve = isotonic(means, std::vector<double>(means.size(), 1.0));
  // More workers never hurt, so what fewer are sure to reach, more are sure to reach too.
  double sure = 0.0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    sure = std::max(sure, logistic(logit(kept_apart(curve[i])) - options_.confidence * deviations[i]));
    curve[i] = sure;
  }
  return curve;
}

void Elasticity::learn_prefill(const std::vector<double>& inputs, double lawful, const Punctuality& seen,
                               Calibration& score) {
  learn(0, inputs, lawful, seen, score);
}

void Elasticity::learn_decode(const std::vector<double>& inputs, double lawful, const Punctuality& seen,
                              Calibration& score) {
  learn(1, inputs, lawful, seen, score);
}

/// A share of n requests is not normal on the logit scale, least of all 0 and 1. It is linearised where law and
/// observation meet (one step of iteratively weighted least squares): with its variance it then says little where
/// the law is sure and nothing contradicts.
void Elasticity::learn(std::size_t process, const std::vector<double>& inputs, double lawful, const Punctuality& seen,
                       Calibration& score) {
  if (seen.requests <= 0.0) return;
  const double law = kept_apart(lawful);
  const double share = seen.on_time / seen.requests;
  const std::vector<double> x = with_law(inputs, lawful);
  GaussianProcess& learner = processes_[process];
  const GaussianProcess::Prediction p = learner.predict(x);
  const double foreseen = logistic(logit(law) + std::clamp(p.mean, -kCorrectionMax, kCorrectionMax));
  const double slope = foreseen * (1.0 - foreseen);
  const double variance = slope * slope * (p.variance + learner.noise_variance()) + slope / seen.requests;
  const double error = std::abs(foreseen - share);
  const bool covered = error <= kInterval90 * calibrated_[process].factor() * std::sqrt(variance) + 0.5 / seen.requests;
  score.note(error, covered);
  calibrated_[process].note(covered);

  const double meeting = (seen.on_time + kPseudo * law) / (seen.requests + kPseudo);
  const double weight = meeting * (1.0 - meeting);
  const double observed = logit(meeting) + (share - meeting) / weight;
  const double correction = std::clamp(observed - logit(law), -2.0 * kCorrectionMax, 2.0 * kCorrectionMax);
  learner.add(x, correction, 1.0 / (seen.requests * weight));
}

}  // namespace sangam
