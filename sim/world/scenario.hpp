// A whole mesh in virtual time: a fleet, models, the control loops by name, and a trace that is thrown at it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/autoscaler/autoscaler_core.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "actors/scheduler/scheduler_core.hpp"
#include "sim/trace/trace.hpp"
#include "sim/world/clients.hpp"
#include "sim/world/hardware.hpp"
#include "sim/world/journal.hpp"

namespace sangam::sim {

struct Scenario {
  std::vector<ModelSpec> models;                ///< By the trace's app.
  std::map<std::int64_t, std::int64_t> workers;  ///< By devices of one: how many.
  DeviceSpec device;
  ClientOptions clients;
  SchedulerOptions scheduler;
  OracleOptions oracle;
  AutoscalerOptions autoscaler;
  Micros letter_takes{200};    ///< From actor to actor.
  Millis sample_every{1'000};  ///< Of the series.
  Micros after{30'000'000};    ///< The world goes on for so long after the last arrival.
  std::function<void(double share)> progress = {};
};

/// Devices on which something was active or on its way.
struct Sample {
  Micros at{0};
  std::int64_t devices = 0;
};

struct Outcome {
  std::vector<JournalEntry> requests;
  std::vector<Sample> series;
  std::uint64_t letters = 0;
  std::vector<std::string> complaints;
};

/// Deterministic: the same scenario and trace give the same outcome.
[[nodiscard]] Outcome simulate(const Scenario& scenario, const Trace& trace);

/// The fleet of Janus's testbed, 768 devices in workers of 1, 4 and 16 (how many of each is our choice), and an own
/// fine-tune for each application of W0.
[[nodiscard]] Scenario w0_scenario();

}  // namespace sangam::sim
