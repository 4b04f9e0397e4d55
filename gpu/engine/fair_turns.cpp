// Virtual time of each model.
#include "gpu/engine/fair_turns.hpp"

#include <algorithm>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {

void RowLimit::learn(std::int64_t rows, Micros cost, Micros bound) {
  const std::int64_t within =
      std::max<std::int64_t>(rows * bound.count() / std::max<std::int64_t>(cost.count(), 1), 1);
  rows_ = cost > bound ? std::min(rows_, within) : std::max(rows_, within);
}

ModelId FairTurns::next(std::span<const ModelId> ready) {
  SANGAM_ASSERT(!ready.empty());
  if (!charged_) charge(0, Micros{1});
  Account* first = nullptr;
  for (const ModelId& model : ready) {
    Account& account = accounts_[model];
    account.start = std::max(account.start, virtual_time_);  // a no-op unless it was idle
    if (first != nullptr && first->start <= account.start) continue;
    first = &account;
    stepping_ = model;
  }
  virtual_time_ = first->start;
  charged_ = false;
  return stepping_;
}

void FairTurns::charge(std::int64_t rows, Micros cost) {
  const auto account = accounts_.find(stepping_);
  if (std::exchange(charged_, true) || account == accounts_.end()) return;
  account->second.start += std::max(cost, Micros{1});
  if (rows > 0 && step_max_ > Micros{0}) account->second.limit.learn(rows, cost, step_max_);
}

std::int64_t FairTurns::rows_max(const ModelId& model, std::int64_t most) const {
  if (step_max_ <= Micros{0}) return most;
  const auto account = accounts_.find(model);
  return std::min(most, account == accounts_.end() ? RowLimit::kUnmeasured : account->second.limit.rows());
}

}  // namespace sangam
