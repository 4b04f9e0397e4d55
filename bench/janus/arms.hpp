// Runs of the simulator side by side, and the rows that Janus's evaluation has.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "sim/report/report.hpp"
#include "sim/trace/trace.hpp"
#include "sim/world/scenario.hpp"

namespace sangam::janus {

/// One run: what is set otherwise than in the common scenario.
struct Arm {
  std::string name;
  std::function<void(sim::Scenario&)> set;
  const sim::Trace* trace = nullptr;
  Micros counts_from{0};  ///< Requests that arrive earlier warm the fleet up and do not count.
};

struct ArmResult {
  sim::Report report;
  sim::MeasuredRun measured;
  double models_on = 0.0;  ///< As in SimulatedRun, and so is the next.
  sim::WakeUps wake_ups;
  double seconds = 0.0;  ///< What the simulation took.
};

/// 768 devices and W0's models under Sangam's control, sized for 0.997.
[[nodiscard]] sim::Scenario fleet();

/// As many at once as there are processors; results in the arms' order.
[[nodiscard]] std::vector<ArmResult> run_arms(const std::vector<Arm>& arms);

/// The seed that `--seed N` gives, else 1.
[[nodiscard]] std::uint64_t seed_of(int argc, const char* const* argv);

/// A share in percent as a row's value.
[[nodiscard]] double percent_of(const sim::Share& share);

}  // namespace sangam::janus
