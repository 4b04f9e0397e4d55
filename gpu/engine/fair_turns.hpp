// Whose step is next, and how long it may be: models share a device by time, not by turns.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// How many rows a model computes within a bound, learned from its steps. Where the cost is a + b * rows,
/// with whatever a and b, what it has learned from a step within the bound never leads beyond the bound.
class RowLimit {
 public:
  static constexpr std::int64_t kUnmeasured = 16;  ///< Rows, as long as no step has been measured.

  void learn(std::int64_t rows, Micros cost, Micros bound);
  [[nodiscard]] std::int64_t rows() const { return rows_; }

 private:
  std::int64_t rows_ = kUnmeasured;
};

/// Start-time fair queueing with equal weights (Goyal, Vin, Cheng: "Start-time Fair Queueing", 1996), a
/// packet being a step. While two models have work, the times that they get differ by at most the longest
/// step of the one plus that of the other. With n models at work, one waits between two of its steps for at
/// most n - 1 times (its own last step + the longest step of another); one that has been idle until the
/// others caught up with it, for at most n - 1 steps. To be idle gives no credit.
class FairTurns {
 public:
  /// `step_max`: what a model should take at most while others wait; 0: no limit.
  explicit FairTurns(Micros step_max) : step_max_(step_max) {}

  /// The next of those that have work; at least one has.
  [[nodiscard]] ModelId next(std::span<const ModelId> ready);
  /// What the step of the last `next` has cost. One that is never charged costs one microsecond, so that
  /// models without a measure take turns.
  void charge(std::int64_t rows, Micros cost);
  /// Rows of the model's next step while others have work too; `most` if there is no limit.
  [[nodiscard]] std::int64_t rows_max(const ModelId& model, std::int64_t most) const;
  void forget(const ModelId& model) { accounts_.erase(model); }

 private:
  struct Account {
    Micros start{0};  ///< Virtual time from which its next step counts.
    RowLimit limit;
  };

  Micros step_max_;
  std::map<ModelId, Account> accounts_;
  Micros virtual_time_{0};  ///< The start of the last step.
  ModelId stepping_;
  bool charged_ = true;
};

}  // namespace sangam
