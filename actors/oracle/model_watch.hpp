// All that the oracle knows of one model: its traffic, its costs, what it needs and what more workers would give.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/oracle/calibration.hpp"
#include "actors/oracle/capacity.hpp"
#include "actors/oracle/elasticity.hpp"
#include "actors/oracle/observation.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "actors/oracle/promises.hpp"
#include "actors/oracle/traffic.hpp"
#include "actors/oracle/worker_costs.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// Where the model is at work now.
struct Deployment {
  int workers = 0;
  int devices = 1;      ///< Of each.
  double others = 0.0;  ///< Mean share of their time that other models use.
};

class ModelWatch {
 public:
  /// `options` must outlive it. `number`: of the model, in the order in which they were met; staggers what can wait.
  ModelWatch(const ModelId& model, const OracleOptions& options, std::uint64_t number);

  void on(const QueueStatus& status) { traffic_.on(status); }
  void on(const ModelTable& table);
  void on(const ServedRequest& request, Instant now);
  void add(const ActorName& worker, const LoadDelta& delta);
  void forget_queue() { traffic_.forget_queue(); }

  /// Looks at the windows that end now, then forecasts anew if anything has changed enough.
  void tick(const Deployment& deployment, Instant now, Calibrations& calibrations);
  /// Fits one Gaussian process whose hyper-parameters are due; false if none is.
  [[nodiscard]] bool fit_one();

  [[nodiscard]] const ModelPrior& prior() const { return prior_; }
  [[nodiscard]] const ModelForecast& forecast() const { return forecast_; }

 private:
  [[nodiscard]] DevicePrior device() const;
  void observe_demand(Instant now, Calibrations& calibrations);
  void observe_attainment(const Traffic& traffic, Instant now, Calibrations& calibrations);
  [[nodiscard]] bool has_moved(const std::vector<double>& inputs, const Deployment& deployment) const;
  /// Puts what clients ask for into the forecast.
  void describe(const Traffic& traffic);
  void foresee_demand(const Traffic& traffic);
  void foresee_attainment(const Traffic& traffic);
  void foresee_division(const Traffic& traffic, const std::vector<PromiseGroup>& groups);

  const OracleOptions& options_;
  ModelPrior prior_;
  TrafficWindows traffic_;
  WorkerCosts costs_;
  Promises promises_;
  Capacity capacity_;
  Elasticity elasticity_;
  UsedDemand used_;
  Instant used_since_{};
  AttainmentWindows windows_;
  Deployment deployment_;
  std::vector<double> inputs_;  // Of the last forecast.
  int age_;                     // Of the last forecast, in ticks.
  bool has_learned_ = true;     // Since the last forecast.
  ModelForecast forecast_;
};

}  // namespace sangam
