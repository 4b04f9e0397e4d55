// The analytic demand, and what is learned on top of it.
#include "actors/oracle/capacity.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

// What is added to both sides of a ratio, so that next to nothing over nothing is no surprise.
constexpr std::array<double, 3> kFloors{1 << 20, 1e-3, 1e-3};
constexpr double kSurpriseMax = 3.0;  // Of a logarithm: a factor of 20.
constexpr double kScale = 0.4;        // The laws are believed to within a factor of about 1.5.

std::array<double, 3> list(const Demand& demand) { return {demand.kv_bytes, demand.compute, demand.bandwidth}; }

Demand demand_of(const std::array<double, 3>& list) { return {list[0], list[1], list[2]}; }

GaussianProcessOptions process_options(const OracleOptions& options, std::uint64_t seed) {
  GaussianProcessOptions process;
  process.inputs = 7;
  process.points_max = options.points_max;
  process.fit_points_max = options.fit_points_max;
  process.scale = kScale;
  process.seed = seed;
  return process;
}

}  // namespace

Demand lawful_demand(const Traffic& traffic, const OperatingPoint& point, const ModelPrior& model,
                     const DevicePrior& device, double workers) {
  Demand demand;
  const double rate = traffic.requests_per_second * point.carried;
  const double tokens = rate * traffic.output_mean;
  const double kv = double(model.kv_per_token.count());
  // Token-seconds of a request: its prompt while it is computed, then prompt and answer so far in each step.
  // Long prompts hold more for longer: E[length time] has the covariance of the two.
  const double prefill = point.service * (traffic.input_mean + std::sqrt(point.service_scv * traffic.input_variance));
  const double decode = point.step * traffic.output_mean * point.context;
  demand.kv_bytes = rate * kv * (prefill + decode);
  const double computed = traffic.input_tokens_per_second * point.carried + tokens;
  // A worker that prefills does nothing else meanwhile, however few of its FLOP/s that takes.
  demand.compute = std::max(workers * point.prompt_share, computed * model.flop_per_token / device.flop_per_second);
  const double read = workers * point.steps_per_second * double(model.weights.count()) + tokens * point.context * kv;
  demand.bandwidth = model.weights.count() > 0 ? read / device.bytes_per_second
                                               : workers * (1.0 - std::exp(-point.batch));
  return demand;
}

std::vector<double> learning_inputs(const Traffic& traffic, double workers) {
  return {std::log1p(traffic.input_tokens_per_second), std::log1p(traffic.requests_per_second),
          std::log1p(traffic.input_mean),              std::log1p(traffic.input_variance),
          std::log1p(traffic.output_mean),             std::log1p(traffic.output_variance),
          std::log(std::max(1.0, workers))};
}

Capacity::Capacity(const OracleOptions& options, std::uint64_t seed)
    : processes_{GaussianProcess(process_options(options, seed)), GaussianProcess(process_options(options, seed + 1)),
                 GaussianProcess(process_options(options, seed + 2))} {}

double Capacity::deviation(std::size_t quantity, const GaussianProcess::Prediction& prediction) const {
  return calibrated_[quantity].factor() * std::sqrt(prediction.variance + processes_[quantity].noise_variance());
}

DemandForecast Capacity::foresee(const std::vector<double>& inputs, const Demand& lawful) const {
  const std::array<double, 3> laws = list(lawful);
  std::array<double, 3> means{};
  std::array<double, 3> deviations{};
  for (std::size_t i = 0; i < laws.size(); ++i) {
    const GaussianProcess::Prediction p = processes_[i].predict(inputs);
    const double factor = std::exp(std::clamp(p.mean, -kSurpriseMax, kSurpriseMax));
    means[i] = std::max(0.0, (laws[i] + kFloors[i]) * factor - kFloors[i]);
    deviations[i] = (laws[i] + kFloors[i]) * factor * deviation(i, p);
  }
  return {demand_of(means), demand_of(deviations)};
}

void Capacity::learn(const std::vector<double>& inputs, const Demand& lawful, const Demand& observed,
                     Calibrations& calibrations) {
  const std::array<double, 3> laws = list(lawful);
  const std::array<double, 3> truth = list(observed);
  const std::array<Calibration*, 3> scores{&calibrations.kv, &calibrations.compute, &calibrations.bandwidth};
  const std::array<double, 3> foreseen = list(foresee(inputs, lawful).mean);
  for (std::size_t i = 0; i < laws.size(); ++i) {
    GaussianProcess& process = processes_[i];
    const double y = std::clamp(std::log((truth[i] + kFloors[i]) / (laws[i] + kFloors[i])), -kSurpriseMax, kSurpriseMax);
    const GaussianProcess::Prediction p = process.predict(inputs);
    const bool covered = std::abs(y - p.mean) <= kInterval90 * deviation(i, p);
    if (truth[i] > kFloors[i]) scores[i]->note(std::abs(foreseen[i] - truth[i]) / truth[i], covered);
    calibrated_[i].note(covered);
    process.add(inputs, y);
  }
}

}  // namespace sangam
