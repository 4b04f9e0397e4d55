// A merge from the pool as it is to a point that is certified.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actors/merger/pool/judge.hpp"
#include "actors/merger/pool/survey.hpp"
#include "actors/merger/run/trajectory.hpp"
#include "actors/merger/search/price_search.hpp"

namespace sangam::merging {

struct MergeOptions {
  FormMenu menu;
  OperatorOptions merging;
  PriceSearchOptions search;
  double alpha = 0.005;  ///< One-sided error of each bound that accepts: many are looked at, and the luckiest win.
  double certificate_alpha = 0.05;  ///< And of the one that certifies.
  int threads = 2;
};

/// What the items that no decision saw say of one model.
struct Certificate {
  PairedCounts counts;
  double bound = 0.0;      ///< Of the drop, in points.
  bool certified = false;  ///< The bound is within the budget.
};

/// One trial, as it is drawn and reported.
struct TrialPoint {
  std::string phase;
  Bytes bytes{};
  double drop_mean = 0.0;   ///< Over models, in points,
  double drop_worst = 0.0;  ///< and of the one that lost most.
  bool accepted = false;    ///< By all.
};

struct MergeOutcome {
  PoolState state;
  Bytes bytes{};     ///< Of the pool's distinct tensors, counted by their content.
  Bytes original{};
  std::vector<Verdict> gate;              ///< By model.
  std::vector<Certificate> certificates;  ///< By model.
  std::vector<TrialPoint> trials;
  std::int64_t evaluations = 0;  ///< Of one model in one state, by this run: none of those that were recalled.
  Digest trajectory;
};

/// Who watches is told what is done, after each piece of it.
struct MergeWatcher {
  Progress progress;
  std::function<void(const TrialPoint& trial, std::size_t number, Bytes best)> trial;
};

/// Names all that decides the outcome: what a trajectory belongs to. `ancestor`: null where there is none.
[[nodiscard]] Digest digest_of_run(const Pool& pool, const MergeOptions& options, const Checkpoint* ancestor);

/// The shelf is of the same pool and operator. Trials that `trajectory` holds are not made again.
[[nodiscard]] Result<MergeOutcome> merge(Shelf& shelf, const MergeOptions& options, Trajectory& trajectory,
                                         const MergeWatcher& watcher);

}  // namespace sangam::merging
