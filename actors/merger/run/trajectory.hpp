// What a merger has tried and heard, kept so that it can be broken off at any moment and end as if it had not been.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/merger/search/search.hpp"
#include "storage/hash/digest.hpp"
#include "storage/store/store.hpp"

namespace sangam::merging {

/// A list of trials, appended to only, each chained to the one before it by a hash. One that the disk has is never
/// computed again; one that was cut off is not there.
class Trajectory {
 public:
  /// `run`: a digest of all that decides the outcome: weights, items, menu, budgets, seeds. Refused where the store
  /// holds another run's trials, or where its chain is broken.
  [[nodiscard]] static Result<Trajectory> open(Store& store, const Digest& run);

  /// What was heard when this was tried; none where that is still to be done. Refused where something else was tried
  /// then: the program or the machine's arithmetic is not the one that began.
  [[nodiscard]] Result<std::optional<std::vector<Verdict>>> recall(std::size_t trial, const Digest& state) const;
  /// On disk when it returns.
  [[nodiscard]] Result<void> append(const Digest& state, std::span<const Verdict> verdicts);

  [[nodiscard]] std::size_t size() const { return trials_.size(); }
  /// Of all that is in it.
  [[nodiscard]] Digest head() const { return head_; }

 private:
  struct Trial {
    Digest state;
    std::vector<Verdict> verdicts;
  };
  Trajectory(Store& store, const Digest& run) : store_(&store), head_(run) {}

  Store* store_;
  Digest head_;
  std::vector<Trial> trials_;
};

}  // namespace sangam::merging
