// What a model's traffic needs: KV bytes and shares of compute and bandwidth, by roofline and Little's law, times
// what has been learned of how much more or less it really is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "actors/oracle/calibration.hpp"
#include "actors/oracle/gaussian_process.hpp"
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

struct DemandForecast {
  Demand mean;
  Demand deviation;
};

/// What the laws say of `workers` that run at `point` each; `device` stands for all devices of one worker.
[[nodiscard]] Demand lawful_demand(const Traffic& traffic, const OperatingPoint& point, const ModelPrior& model,
                                   const DevicePrior& device, double workers);

/// The inputs of learning: the logarithms of one and the six features, and of the number of workers.
[[nodiscard]] std::vector<double> learning_inputs(const Traffic& traffic, double workers);

/// A Gaussian process each for the logarithm of real over lawful demand. Where nothing has been seen the law holds,
/// with a wide deviation.
class Capacity {
 public:
  Capacity(const OracleOptions& options, std::uint64_t seed);

  [[nodiscard]] DemandForecast foresee(const std::vector<double>& inputs, const Demand& lawful) const;
  /// Holds what was observed against the forecast, then learns it.
  void learn(const std::vector<double>& inputs, const Demand& lawful, const Demand& observed,
             Calibrations& calibrations);

  [[nodiscard]] std::array<GaussianProcess, 3>& processes() { return processes_; }

 private:
  /// Of the logarithm of what will be observed.
  [[nodiscard]] double deviation(std::size_t quantity, const GaussianProcess::Prediction& prediction) const;

  std::array<GaussianProcess, 3> processes_;  // KV, compute, bandwidth.
  std::array<AdaptiveInterval, 3> calibrated_;
};

}  // namespace sangam
