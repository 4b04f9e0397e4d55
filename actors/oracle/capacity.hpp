// What a model's traffic needs: KV bytes and shares of compute and bandwidth, by roofline and Little's law.
#pragma once

#include "actors/oracle/oracle_options.hpp"
#include "actors/oracle/traffic.hpp"
#include "actors/oracle/worker_costs.hpp"

namespace sangam {

/// Over all workers of a model together; shares are of one worker.
struct Demand {
  double kv_bytes = 0.0;
  double compute = 0.0;
  double bandwidth = 0.0;
};

/// What the laws say of `workers` that run at `point` each; `devices`: of one worker.
[[nodiscard]] Demand lawful_demand(const Traffic& traffic, const OperatingPoint& point, const ModelPrior& model,
                                   const DevicePrior& device, double workers);

}  // namespace sangam
