// From windows to a forecast.
#include "actors/oracle/model_watch.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

constexpr double kCertain = 0.99999;  // More workers than give this are not looked at one by one.

const ModelPrior& prior_of(const ModelId& model, const OracleOptions& options) {
  const auto found = options.priors.find(model);
  return found == options.priors.end() ? options.prior : found->second;
}

}  // namespace

ModelWatch::ModelWatch(const ModelId& model, const OracleOptions& options)
    : options_(options),
      prior_(prior_of(model, options)),
      traffic_({options.fast, options.slow, options.past}, prior_.output_mean),
      costs_(prior_),
      promises_(options.ttft, options.tpot) {
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

void ModelWatch::on(const ServedRequest& request, Instant) {
  if (request.code != ErrorCode::cancelled) promises_.remember(request);
}

void ModelWatch::add(const ActorName&, const LoadDelta& delta) {
  costs_.learn(delta, traffic_.over(options_.slow).input_mean);
}

void ModelWatch::tick(const Deployment& deployment, Instant now) {
  deployment_ = deployment;
  traffic_.tick(now);
  const Traffic latest = traffic_.over(options_.fast);
  forecast_.requests_per_second = latest.requests_per_second;
  forecast_.input_tokens_per_second = latest.input_tokens_per_second;
  forecast_.volatility = traffic_.volatility();
  const Traffic traffic = traffic_.believed();
  foresee_demand(traffic);
  foresee_attainment(traffic);
}

DevicePrior ModelWatch::device() const {
  DevicePrior device = options_.device;
  device.flop_per_second *= deployment_.devices;
  device.bytes_per_second *= deployment_.devices;
  return device;
}

void ModelWatch::foresee_demand(const Traffic& traffic) {
  const double workers = std::max(1, deployment_.workers);
  const OperatingPoint point = costs_.operate(traffic, workers, deployment_.others);
  const Demand demand = lawful_demand(traffic, point, prior_, device(), workers);
  forecast_.kv = Bytes(std::int64_t(demand.kv_bytes));
  forecast_.compute = demand.compute;
  forecast_.bandwidth = demand.bandwidth;
}

void ModelWatch::foresee_attainment(const Traffic& traffic) {
  forecast_.prefill_attainment.clear();
  forecast_.decode_attainment.clear();
  const std::vector<PromiseGroup> groups = promises_.groups(costs_, traffic.input_mean);
  Attainment attainment{0.0, 0.0};
  for (std::size_t m = 1; m <= options_.instances_max; ++m) {
    if (attainment.prefill < kCertain || attainment.decode < kCertain) {
      const OperatingPoint point = costs_.operate(traffic, double(m), deployment_.others);
      const Attainment next = lawful_attainment(groups, point, traffic.requests_per_second, int(m));
      attainment = {std::max(attainment.prefill, next.prefill), std::max(attainment.decode, next.decode)};
    }
    forecast_.prefill_attainment.push_back(attainment.prefill);
    forecast_.decode_attainment.push_back(attainment.decode);
  }
}

}  // namespace sangam
