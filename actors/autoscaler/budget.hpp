// Who gets how much when not everyone can have what they need.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "actors/autoscaler/sizing.hpp"

namespace sangam {

/// One model's wish, and what the next worker of each kind would be worth to it.
struct Claim {
  Need need;
  double requests_per_second = 0.0;
  std::span<const double> prefill_attainment;  ///< As in ModelForecast.
  std::span<const double> decode_attainment;
  std::span<const double> mixed_attainment;
};

/// Shares `workers` out: what each claim gets, at most its need. Every claim gets one worker of each kind before
/// any gets a second; where not even that is possible, those with the most requests do.
using BudgetRule = std::vector<Need> (*)(std::span<const Claim>, std::int64_t workers);

/// In proportion to the needs, what is left by largest remainder (Janus).
[[nodiscard]] std::vector<Need> proportional(std::span<const Claim> claims, std::int64_t workers);
/// The next worker to whom it brings the most requests in time.
[[nodiscard]] std::vector<Need> marginal(std::span<const Claim> claims, std::int64_t workers);

/// By name: proportional, marginal. The error names them.
[[nodiscard]] Result<BudgetRule> budget_rule(std::string_view name);

}  // namespace sangam
