// Half an hour of models that come and go, in virtual time, under one placement policy.
#pragma once

#include "actors/placement/policies.hpp"

namespace sangam {

struct ChurnResult {
  double workers = 0.0;            ///< Mean over time.
  double moves_per_arrival = 0.0;  ///< Models that changed their worker, for each that came.
  double overloaded = 0.0;         ///< Share of workers in use, over time, whose demand is above what they have.
  double decision_p99 = 0.0;       ///< Milliseconds of thread time that an event took.
};

/// Of 240 models, about 120 at a time are there, for 5 minutes each; the same ones for every policy.
[[nodiscard]] ChurnResult churn(const PlacementPolicy& policy);

}  // namespace sangam
