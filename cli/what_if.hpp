// From a mesh's snapshot to a scenario and a trace that stand for it, and what a change makes of them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/snapshot.hpp"
#include "sim/trace/trace.hpp"
#include "sim/world/scenario.hpp"

namespace sangam {

/// What is simulated: a mesh's snapshot, as far as changes can say something of it.
struct Situation {
  std::vector<SnapshotModel> models;             ///< Those that clients ask for.
  std::map<std::int64_t, std::int64_t> workers;  ///< By devices of one: how many.
  Bytes memory{0};                               ///< Of a device: the least of the workers'.
  bool everywhere = false;  ///< Each of these models is active on each worker of its class.
  std::string control;      ///< Empty: as it is, with `everywhere`, else "sangam".
  double slo = 1.0;         ///< Times the deadlines.
};

/// Refused: a snapshot without workers, and one of which no oracle told traffic and costs.
[[nodiscard]] Result<Situation> situation_of(const Snapshot& snapshot);

/// "rate=3" and "rate MODEL=3" (times as many requests), "workers=4", "workers=+2", "workers=-1" (of each class),
/// "remove MODEL", "control=NAME", "slo=0.5" (times the deadlines).
[[nodiscard]] Result<void> apply_change(Situation& situation, std::string_view change);

/// Stationary: Poisson arrivals at each model's rate, lengths lognormal with its means and deviations, at least a
/// token. An app is a model, in their order. Each model draws from a seed of its own, so that a change of one leaves
/// the requests of the others as they were.
[[nodiscard]] sim::Trace trace_of(const Situation& situation, double seconds, std::uint64_t seed);

/// The mesh in virtual time: costs as learned, deadlines as told (the published ones where none were).
[[nodiscard]] Result<sim::Scenario> scenario_of(const Situation& situation);

}  // namespace sangam
