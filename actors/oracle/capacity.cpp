// The analytic demand.
#include "actors/oracle/capacity.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {

Demand lawful_demand(const Traffic& traffic, const OperatingPoint& point, const ModelPrior& model,
                     const DevicePrior& device, double workers) {
  Demand demand;
  const double rate = traffic.requests_per_second;
  const double tokens = rate * traffic.output_mean;
  const double kv = double(model.kv_per_token.count());
  // Token-seconds of a request: its prompt while it is computed, then prompt and answer so far in each step.
  const double prefill = point.service * point.slowdown * traffic.input_mean;
  const double decode = point.step * traffic.output_mean * point.context;
  demand.kv_bytes = rate * kv * (prefill + decode);
  const double prefill_time = rate * point.service;
  const double decode_time = workers * (1.0 - std::exp(-point.batch));
  const double computed = traffic.input_tokens_per_second + tokens;
  demand.compute =
      model.flop_per_token > 0.0 ? computed * model.flop_per_token / device.flop_per_second : prefill_time;
  const double passes = workers * point.steps_per_second + rate;
  const double read = passes * double(model.weights.count()) + tokens * point.context * kv;
  demand.bandwidth = model.weights.count() > 0 ? read / device.bytes_per_second : decode_time;
  demand.compute = std::min(demand.compute, std::max(1.0, prefill_time));
  demand.bandwidth = std::min(demand.bandwidth, workers);
  return demand;
}

}  // namespace sangam
