// A whole mesh in virtual time: a fleet, models, the control loops by name, and a trace that is thrown at it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/autoscaler/autoscaler_core.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "actors/placement/placement_options.hpp"
#include "actors/scheduler/scheduler_core.hpp"
#include "sim/report/record.hpp"
#include "sim/trace/trace.hpp"
#include "sim/world/clients.hpp"
#include "sim/world/hardware.hpp"
#include "sim/world/sim_worker.hpp"

namespace sangam::sim {

struct Scenario {
  std::string title;
  double time_scale = 1.0;  ///< As in MeasuredRun.
  std::vector<ModelSpec> models;                ///< By the trace's app.
  std::map<std::int64_t, std::int64_t> workers;  ///< By devices of one: how many.
  DeviceSpec device;
  ClientOptions clients;
  SchedulerOptions scheduler;
  OracleOptions oracle;
  AutoscalerOptions autoscaler;
  /// Of the weights of fine-tunes of one base, what is the same in all; 0: each model is bytes of its own.
  double shared_share = 0.0;
  bool fixed = false;  ///< Every model is active on every worker of its class, and there are no control loops.
  std::optional<PlacementOptions> placement;  ///< Without: every model is the autoscaler's.
  bool instances_by_work = false;  ///< Placement gives models instances as `instances_by_work()` says, for the whole run.
  Micros letter_takes{200};    ///< From actor to actor.
  Millis sample_every{1'000};  ///< Of the devices in use: those on which something is active or on its way.
  Micros after{30'000'000};    ///< The world goes on for so long after the last arrival.
  std::function<void(double share)> progress = {};
};

struct SimulatedRun {
  MeasuredRun measured;
  double models_on = 0.0;  ///< Per worker in use, in the mean over them and over time.
  WakeUps wake_ups;        ///< Of all workers.
  std::uint64_t letters = 0;
  std::vector<std::string> complaints;  ///< Warnings and errors that actors logged, up to a thousand.
};

/// Deterministic: the same scenario and trace give the same run.
[[nodiscard]] SimulatedRun simulate(const Scenario& scenario, const Trace& trace);

/// The time of a letter where a request takes so much beside its steps at an idle mesh: four of them come between its
/// arrival and its run.
[[nodiscard]] Micros letter_takes_of(double request_us);

/// The fleet of Janus's testbed, 768 devices in workers of 1, 4 and 16 (how many of each is our choice), and an own
/// fine-tune for each application of W0.
[[nodiscard]] Scenario w0_scenario();

}  // namespace sangam::sim
