// From windows to observations and forecasts.
#include "actors/oracle/model_watch.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {


constexpr double kMoved = 0.03;  // In the logarithm of any feature: so much changes no decision.
constexpr std::size_t kFewPoints = 32;  // So few may have led the fit astray; from then on it goes on from the last.
constexpr int kAgeMax = 10;      // Ticks; costs change slowly and are looked at then.
constexpr double kComfortable = 0.85;  // Share of their time that workers can be asked for.

const ModelPrior& prior_of(const ModelId& model, const OracleOptions& options) {
  const auto found = options.priors.find(model);
  return found == options.priors.end() ? options.prior : found->second;
}

Bytes bytes(double count) { return Bytes(std::int64_t(std::clamp(count, 0.0, 9e18))); }

}  // namespace

ModelWatch::ModelWatch(const ModelId& model, const OracleOptions& options, std::uint64_t number)
    : options_(options),
      prior_(prior_of(model, options)),
      traffic_({options.fast, options.slow, options.past}, prior_.output_mean),
      costs_(prior_),
      promises_(options.ttft, options.tpot),
      capacity_(options, options.seed + 8 * number),
      elasticity_(options, options.seed + 8 * number + 4),
      windows_({options.attainment_sample, options.attainment_lag}),
      age_(int(number % kAgeMax)) {
  forecast_.model = model;
}

void ModelWatch::on(const ModelTable& table) {
  Bytes weights{0};
  for (const SegmentSize& segment : table.segments) weights += segment.bytes;
  prior_.weights = weights;
  prior_.kv_per_token = table.kv_per_token;
  // Weights of two bytes, each multiplied and added once a token.
  prior_.flop_per_token = double(weights.count());
}

void ModelWatch::on(const ServedRequest& request, Instant now) {
  if (request.code != ErrorCode::cancelled) promises_.remember(request);
  windows_.note(request, now);
}

void ModelWatch::add(const ActorName& worker, const LoadDelta& delta) {
  LoadDelta counted = delta;
  const double prompt = std::max(1.0, traffic_.over(options_.slow).input_mean * costs_.computed_share());
  counted.prompts = delta.prefill_tokens / prompt;
  costs_.learn(counted);
  used_.add(worker, delta);
}

void ModelWatch::tick(const Deployment& deployment, Instant now, Calibrations& calibrations) {
  traffic_.tick(now);
  const Traffic latest = traffic_.over(options_.fast);
  forecast_.requests_per_second = latest.requests_per_second;
  forecast_.input_tokens_per_second = latest.input_tokens_per_second;
  forecast_.volatility = traffic_.volatility();
  const Traffic traffic = traffic_.believed();
  std::vector<double> inputs = learning_inputs(traffic, deployment.workers);
  const bool moved = has_moved(inputs, deployment);
  deployment_ = deployment;
  observe_demand(now, calibrations);
  observe_attainment(traffic, now, calibrations);
  if (!moved && !has_learned_ && ++age_ < kAgeMax) return;
  inputs_ = std::move(inputs);
  age_ = 0;
  has_learned_ = false;
  forecast_.costs = costs_.costs();
  describe(traffic);
  foresee_demand(traffic);
  foresee_attainment(traffic);
}

void ModelWatch::describe(const Traffic& traffic) {
  const PromiseGroup promised = promises_.median();
  forecast_.traffic = {traffic.requests_per_second,
                       traffic.input_mean,
                       std::sqrt(std::max(0.0, traffic.input_variance)),
                       traffic.output_mean,
                       std::sqrt(std::max(0.0, traffic.output_variance)),
                       Millis(std::llround(promised.ttft * 1e3)),
                       Millis(std::llround(promised.tpot * 1e3))};
}

bool ModelWatch::has_moved(const std::vector<double>& inputs, const Deployment& deployment) const {
  if (inputs_.size() != inputs.size() || deployment.workers != deployment_.workers ||
      deployment.devices != deployment_.devices || std::abs(deployment.others - deployment_.others) > kMoved) {
    return true;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (std::abs(inputs[i] - inputs_[i]) > kMoved) return true;
  }
  return false;
}

bool ModelWatch::fit_one() {
  const auto fit = [&](GaussianProcess& process) {
    if (!process.fit_due()) return false;
    process.fit(process.size() <= kFewPoints ? 1 : 0);
    has_learned_ = true;
    return true;
  };
  return std::any_of(capacity_.processes().begin(), capacity_.processes().end(), fit) ||
         std::any_of(elasticity_.processes().begin(), elasticity_.processes().end(), fit);
}

DevicePrior ModelWatch::device() const {
  DevicePrior device = options_.device;
  device.flop_per_second *= deployment_.devices;
  device.bytes_per_second *= deployment_.devices;
  return device;
}

void ModelWatch::observe_demand(Instant now, Calibrations& calibrations) {
  if (used_since_ == Instant{}) used_since_ = now;
  if (now < used_since_ + options_.capacity_sample) return;
  const double seconds = std::chrono::duration<double>(now - used_since_).count();
  const Traffic traffic = traffic_.between(used_since_, now);
  const double workers = used_.workers(seconds);
  if (workers >= 0.5) costs_.learn_computed(traffic.input_tokens_per_second * seconds, used_.prefill_tokens());
  if (workers >= 0.5 && costs_.settled() && traffic.requests_per_second > 0.0 && traffic.output_mean > 0.0) {
    const OperatingPoint point = costs_.operate(traffic, workers, deployment_.others);
    const Demand lawful = lawful_demand(traffic, point, prior_, device(), workers);
    capacity_.learn(learning_inputs(traffic, workers), lawful, used_.mean(seconds), calibrations);
    has_learned_ = true;
  }
  used_.reset();
  used_since_ = now;
}

void ModelWatch::observe_attainment(const Traffic& traffic, Instant now, Calibrations& calibrations) {
  const int workers = deployment_.workers;
  AttainmentWindow* ended = windows_.tick(workers, traffic_.arrived(), now);
  if (ended != nullptr && workers > 0 && costs_.settled()) {
    ended->inputs = learning_inputs(traffic, workers);
    ended->lawful = lawful_attainment(promises_.groups(costs_, traffic.input_mean), costs_,
                                      costs_.operate(traffic, workers, deployment_.others),
                                      traffic.requests_per_second, workers);
  }
  const auto window = windows_.complete(now);
  if (!window.has_value() || !window->steady || window->inputs.empty()) return;
  elasticity_.learn_prefill(window->inputs, window->lawful.prefill, window->first, calibrations.prefill_attainment);
  elasticity_.learn_decode(window->inputs, window->lawful.decode, window->later, calibrations.decode_attainment);
  has_learned_ = true;
}

void ModelWatch::foresee_demand(const Traffic& traffic) {
  // What is asked for, and not what too few workers can carry of it.
  const double enough = std::ceil(costs_.workers_for(traffic, kComfortable));
  const double workers = std::max({1.0, enough, double(deployment_.workers)});
  const OperatingPoint point = costs_.operate(traffic, workers, deployment_.others);
  const Demand lawful = lawful_demand(traffic, point, prior_, device(), workers);
  const DemandForecast demand = capacity_.foresee(learning_inputs(traffic, workers), lawful);
  forecast_.kv = bytes(demand.mean.kv_bytes);
  forecast_.kv_deviation = bytes(demand.deviation.kv_bytes);
  forecast_.compute = demand.mean.compute;
  forecast_.compute_deviation = demand.deviation.compute;
  forecast_.bandwidth = demand.mean.bandwidth;
  forecast_.bandwidth_deviation = demand.deviation.bandwidth;
}

void ModelWatch::foresee_attainment(const Traffic& traffic) {
  const std::vector<PromiseGroup> groups = promises_.groups(costs_, traffic.input_mean);
  AttainmentCurves curves = elasticity_.foresee(
      [&](int workers) { return learning_inputs(traffic, workers); },
      [&](int workers) {
        return lawful_attainment(groups, costs_, costs_.operate(traffic, workers, deployment_.others),
                                 traffic.requests_per_second, workers);
      },
      deployment_.workers);
  forecast_.mixed_attainment = std::move(curves.prefill);
  for (std::size_t i = 0; i < forecast_.mixed_attainment.size(); ++i) {
    forecast_.mixed_attainment[i] = std::min(forecast_.mixed_attainment[i], curves.decode[i]);
  }
  foresee_division(traffic, groups);
}

/// With some workers that only prefill and others that only decode, by law: what is learned is learned of all workers
/// of a model together.
void ModelWatch::foresee_division(const Traffic& traffic, const std::vector<PromiseGroup>& groups) {
  forecast_.prefill_attainment.clear();
  forecast_.decode_attainment.clear();
  double first = 0.0;
  double later = 0.0;
  for (std::size_t m = 1; m <= options_.instances_max; ++m) {
    if (first < kCertainAttainment) {
      const OperatingPoint point = costs_.operate(traffic, double(m), 0.0, Duty::prefill);
      first = std::max(first, lawful_attainment(groups, costs_, point, traffic.requests_per_second, int(m)).prefill);
    }
    if (later < kCertainAttainment) {
      later = std::max(later, lawful_decode(groups, costs_.operate(traffic, double(m), 0.0, Duty::decode)));
    }
    forecast_.prefill_attainment.push_back(first);
    forecast_.decode_attainment.push_back(later);
  }
}

}  // namespace sangam
