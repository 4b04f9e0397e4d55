// The workers of one tensor-parallel class and what is placed on them, as a packing problem.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "actors/placement/ledger.hpp"
#include "actors/placement/packing.hpp"
#include "actors/placement/weight_map.hpp"
#include "messages/vocabulary/names.hpp"

namespace sangam {

/// What is known of a worker.
struct KnownWorker {
  Incarnation incarnation{};
  Bytes pool{0};               ///< 0: not said yet.
  std::int64_t devices = 0;    ///< 0: not said yet.
  std::set<ModelId> models;    ///< That it could hold.
  std::set<ModelId> active;    ///< Up, and not on the way down.
  std::uint64_t catalogue = 0; ///< Equal for workers that know the same models.
};

using KnownWorkers = std::map<ActorName, KnownWorker>;

/// An instance and its reservation, placed or not (`worker` empty).
struct Candidate {
  InstanceKey key;
  Placed placed;
};

/// Names beside the numbers of a PackingProblem.
struct Board {
  PackingProblem problem;
  std::vector<InstanceKey> keys;   ///< By item.
  std::vector<ActorName> workers;  ///< By bin: those in use first, then the free ones, then the elastic ones.
  Packing placed;                  ///< What the candidates' workers say.
  Bytes pool{0};                   ///< The largest: shares of HBM are of it.
};

/// Candidates need a known table; those whose worker is not there are placed nowhere. `elastic` counts the instances
/// that the autoscaler has on each of its workers: those with fewer are taken first.
[[nodiscard]] Board make_board(const KnownWorkers& hosts, std::int64_t devices, std::span<const Candidate> candidates,
                               WeightMap& weights, const std::map<ActorName, std::size_t>& elastic);

/// What is active of the board's models on its workers now; of a model's instances, the one that is placed there.
[[nodiscard]] Packing present_on(const Board& board, const KnownWorkers& hosts);

}  // namespace sangam
