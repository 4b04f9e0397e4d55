// All that the oracle knows of one model: its traffic, its costs, what it needs and what more workers would give.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/oracle/capacity.hpp"
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
  ModelWatch(const ModelId& model, const OracleOptions& options);

  void on(const QueueStatus& status) { traffic_.on(status); }
  void on(const ModelTable& table);
  void on(const ServedRequest& request, Instant now);
  void add(const ActorName& worker, const LoadDelta& delta);
  void forget_queue() { traffic_.forget_queue(); }

  void tick(const Deployment& deployment, Instant now);
  [[nodiscard]] const ModelPrior& prior() const { return prior_; }
  [[nodiscard]] const ModelForecast& forecast() const { return forecast_; }

 private:
  [[nodiscard]] DevicePrior device() const;
  void foresee_demand(const Traffic& traffic);
  void foresee_attainment(const Traffic& traffic);

  const OracleOptions& options_;
  ModelPrior prior_;
  TrafficWindows traffic_;
  WorkerCosts costs_;
  Promises promises_;
  Deployment deployment_;
  ModelForecast forecast_;
};

}  // namespace sangam
