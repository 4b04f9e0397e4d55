// How the placement is set up, as read from the configuration.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "actors/placement/policies.hpp"
#include "actors/placement/pools.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

struct PlacementOptions {
  ActorName self{"placement"};
  std::vector<ActorName> tell;  ///< Who hears the plans: lifecycle, autoscaler.
  std::uint64_t epoch = 0;      ///< Plans have epochs above it: the last one that was ever said.
  PlacementPolicy policy = potential_policy();
  PoolOptions pools;
  Millis interval{30'000};  ///< Between consolidations (Janus: 30 s).
  /// The first plan waits so long for workers to say what they are and have.
  Millis settle{2'000};
  /// Demand is the mean and so many deviations of its forecast.
  double deviations = 1.0;
  /// Share of a worker's compute and bandwidth that may be planned: requests that find the rest idle wait for nobody.
  double busy_max = 0.5;
  std::size_t models_max = 4;  ///< On one worker.
  /// How many instances a model has, each on another worker and with its part of the demand; one where it is not
  /// named. For policies that keep instances of a model apart (`periodic_balance`).
  std::map<ModelId, std::uint32_t> instances;
  /// A worker's bins are mended when their damage rho is above it. Janus has such a threshold and does not publish
  /// its value; this one is ours.
  double damage_max = 0.5;
  /// A worker saved is worth moving so many pools of bytes. Copying a pool takes seconds of two workers; what is
  /// saved is a worker for an interval at least.
  double pools_per_worker_saved = 2.0;
  /// Evaluations of a model on a worker in one search for a better packing: some tens of milliseconds.
  std::uint64_t search_effort = 1'000'000;
  std::size_t exact_matching_max = 128;  ///< Bins in one exact assignment; larger groups are matched greedily.
};

}  // namespace sangam
