// Guarantees first, then the rest by rule.
#include "actors/autoscaler/budget.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace sangam {
namespace {

std::int64_t total_of(std::span<const Claim> claims) {
  return std::accumulate(claims.begin(), claims.end(), std::int64_t{0},
                         [](std::int64_t sum, const Claim& claim) { return sum + claim.need.total(); });
}

std::vector<Need> all_of(std::span<const Claim> claims) {
  std::vector<Need> given;
  for (const Claim& claim : claims) given.push_back(claim.need);
  return given;
}

/// One of each kind that is needed.
Need least_of(const Need& need) {
  const auto one = [](std::int64_t wanted) { return std::min<std::int64_t>(wanted, 1); };
  return {one(need.prefill), one(need.decode), one(need.mixed)};
}

std::vector<std::size_t> busiest_first(std::span<const Claim> claims) {
  std::vector<std::size_t> order(claims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return claims[a].requests_per_second > claims[b].requests_per_second;
  });
  return order;
}

/// One of each kind to whom it is possible; takes them off `workers`.
std::vector<Need> guaranteed(std::span<const Claim> claims, std::int64_t& workers) {
  std::vector<Need> given(claims.size());
  for (const std::size_t i : busiest_first(claims)) {
    const Need least = least_of(claims[i].need);
    if (least.total() > workers) continue;
    given[i] = least;
    workers -= least.total();
  }
  return given;
}

/// Divides what one model has been given as it had divided its need.
Need divided(const Need& need, std::int64_t workers) {
  if (need.mixed > 0) return {0, 0, workers};
  const double share = double(need.prefill) / double(need.total());
  const std::int64_t prefill = std::clamp<std::int64_t>(std::llround(share * double(workers)), 1, workers - 1);
  return {prefill, workers - prefill};
}

double bound(std::span<const double> bounds, std::int64_t workers) {
  if (bounds.empty() || workers <= 0) return 0.0;
  return bounds[std::min(std::size_t(workers), bounds.size()) - 1];
}

}  // namespace

std::vector<Need> proportional(std::span<const Claim> claims, std::int64_t workers) {
  if (total_of(claims) <= workers) return all_of(claims);
  std::vector<Need> given = guaranteed(claims, workers);
  double wanted = 0.0;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (given[i].total() > 0) wanted += double(claims[i].need.total() - given[i].total());
  }
  if (wanted <= 0.0) return given;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::vector<std::int64_t> extra(claims.size(), 0);
  const std::int64_t pool = workers;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (given[i].total() == 0) continue;
    const double share = double(pool) * double(claims[i].need.total() - given[i].total()) / wanted;
    extra[i] = std::int64_t(std::floor(share));
    workers -= extra[i];
    remainders.emplace_back(share - std::floor(share), i);
  }
  std::stable_sort(remainders.begin(), remainders.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [remainder, i] : remainders) {
    if (workers <= 0) break;
    if (remainder > 0.0) ++extra[i], --workers;
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (extra[i] > 0) given[i] = divided(claims[i].need, given[i].total() + extra[i]);
  }
  return given;
}

std::vector<Need> marginal(std::span<const Claim> claims, std::int64_t workers) {
  if (total_of(claims) <= workers) return all_of(claims);
  std::vector<Need> given = guaranteed(claims, workers);
  for (; workers > 0; --workers) {
    double best = -1.0;
    std::int64_t* taker = nullptr;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (given[i].total() == 0) continue;
      const double rate = claims[i].requests_per_second;
      const auto consider = [&](std::int64_t& has, std::int64_t need, std::span<const double> bounds) {
        const double gain = rate * (bound(bounds, has + 1) - bound(bounds, has));
        if (has < need && gain > best) best = gain, taker = &has;
      };
      consider(given[i].prefill, claims[i].need.prefill, claims[i].prefill_attainment);
      consider(given[i].decode, claims[i].need.decode, claims[i].decode_attainment);
      consider(given[i].mixed, claims[i].need.mixed, claims[i].mixed_attainment);
    }
    if (taker == nullptr) break;
    ++*taker;
  }
  return given;
}

Result<BudgetRule> budget_rule(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, BudgetRule>, 2> kRules{
      {{"proportional", proportional}, {"marginal", marginal}}};
  for (const auto& [known, rule] : kRules) {
    if (known == name) return rule;
  }
  return make_error(ErrorCode::invalid_input,
                    "budget rule '" + std::string(name) + "' is not known; use one of proportional, marginal");
}

}  // namespace sangam
