// What a search is: it proposes states of the pool, hears what became of each model, and proposes the next.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/merger/search/allocation.hpp"

namespace sangam::merging {

/// How one model did in one state, on the items of the gate, against itself unmerged.
struct Verdict {
  std::int64_t items = 0;
  std::int64_t lost = 0;  ///< Right before, wrong now.
  std::int64_t won = 0;
  double bound = 0.0;     ///< Upper confidence bound of the drop, in points; the drop where that is beyond the budget.
  bool accepted = false;  ///< The bound is within the model's budget.

  /// In points: what of a hundred items is lost more than won.
  [[nodiscard]] double drop() const { return items == 0 ? 0.0 : 100.0 * double(lost - won) / double(items); }
  bool operator==(const Verdict&) const = default;
};

/// Deterministic: the same verdicts lead to the same proposals. So a search that was broken off is resumed by telling
/// it again what it has heard.
class Search {
 public:
  virtual ~Search() = default;
  /// None when it has ended.
  virtual std::optional<PoolState> next() = 0;
  /// Of the last proposal, by model.
  virtual void hear(std::span<const Verdict> verdicts) = 0;
  /// The best state so far in which every model is accepted: at first the pool as it is.
  [[nodiscard]] virtual const PoolState& best() const = 0;
  /// For people: "prices, round 3 of 10".
  [[nodiscard]] virtual std::string phase() const = 0;
};

}  // namespace sangam::merging
