// The policies as tables of what they do.
#include "actors/placement/policies.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>

#include "actors/placement/search.hpp"

namespace sangam {
namespace {

std::optional<BinIndex> most_aligned(Bins& bins, ItemIndex item) { return bins.choose(item, FitRule::aligned); }

std::optional<BinIndex> first_with_room(Bins& bins, ItemIndex item) { return bins.choose(item, FitRule::first); }

std::optional<BinIndex> never_shared(Bins&, ItemIndex) { return std::nullopt; }

Packing first_fit(const PackingProblem& problem, std::uint64_t) { return first_fit_decreasing(problem); }

/// Token rate over the HBM that would be left, with the item there.
double pressure_of(const Bins& bins, BinIndex bin, ItemIndex item) {
  const PackingProblem& problem = bins.problem();
  const auto& items = bins.packing()[bin];
  const double rate = std::accumulate(items.begin(), items.end(), problem.items[item].rate,
                                      [&](double sum, ItemIndex i) { return sum + problem.items[i].rate; });
  const double left = bins.residual(bin)[0] - bins.marginal(bin, item)[0];
  return rate / std::max(left, kRounding);
}

/// Of the bins in use that have room.
std::optional<BinIndex> least_pressed(Bins& bins, ItemIndex item) {
  std::optional<BinIndex> best;
  double least = 0.0;
  for (BinIndex bin = 0; bin < bins.packing().size(); ++bin) {
    if (bins.packing()[bin].empty() || !bins.fits(bin, item)) continue;
    const double pressure = pressure_of(bins, bin, item);
    if (best && pressure >= least) continue;
    best = bin;
    least = pressure;
  }
  return best;
}

/// Prism has such a threshold for moves and does not publish it.
constexpr double kStaysBelow = 1.5;

/// Of all bins that have room and nothing of its model; its home, where that is hardly worse.
std::optional<BinIndex> least_pressed_of_all(Bins& bins, ItemIndex item) {
  const PackingProblem& problem = bins.problem();
  const Item& it = problem.items[item];
  std::optional<BinIndex> best;
  double least = 0.0;
  double at_home = std::numeric_limits<double>::infinity();
  for (BinIndex bin = 0; bin < bins.packing().size(); ++bin) {
    const auto& items = bins.packing()[bin];
    const bool is_there = it.model != kNoModel && std::any_of(items.begin(), items.end(), [&](ItemIndex i) {
      return problem.items[i].model == it.model;
    });
    if (is_there || !bins.fits(bin, item)) continue;
    const double pressure = pressure_of(bins, bin, item);
    if (bin == it.home) at_home = pressure;
    if (best && pressure >= least) continue;
    best = bin;
    least = pressure;
  }
  return at_home <= kStaysBelow * least ? it.home : best;
}

template <auto kChoose>
Packing by_pressure(const PackingProblem& problem, std::uint64_t) {
  std::vector<ItemIndex> order(problem.items.size());
  std::iota(order.begin(), order.end(), ItemIndex{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](ItemIndex a, ItemIndex b) { return problem.items[a].rate > problem.items[b].rate; });
  Bins bins(problem);
  for (const ItemIndex item : order) {
    std::optional<BinIndex> bin = kChoose(bins, item);
    if (!bin) bin = bins.unused_for(item);
    if (bin) bins.put(*bin, item);
  }
  return bins.packing();
}

}  // namespace

PlacementPolicy potential_policy() {
  PlacementPolicy policy;
  policy.name = "potential";
  policy.choose = most_aligned;
  policy.pack = pack_anew;
  policy.repairs = true;
  policy.weighs_moves = true;
  return policy;
}

PlacementPolicy first_fit_decreasing_policy() {
  PlacementPolicy policy;
  policy.name = "first_fit_decreasing";
  policy.choose = first_with_room;
  policy.pack = first_fit;
  policy.weighs_moves = true;
  return policy;
}

PlacementPolicy static_policy() {
  PlacementPolicy policy;
  policy.name = "static";
  policy.choose = never_shared;
  policy.dedicated = true;
  return policy;
}

PlacementPolicy periodic_repack_policy() {
  PlacementPolicy policy;
  policy.name = "periodic_repack";
  policy.choose = least_pressed;
  policy.pack = by_pressure<least_pressed>;
  policy.interval = Millis(5'000);
  policy.idle_leave = Millis(50'000);
  policy.kv_budget = Bytes(6'000'000'000);
  return policy;
}

PlacementPolicy periodic_balance_policy() {
  PlacementPolicy policy = periodic_repack_policy();
  policy.name = "periodic_balance";
  policy.choose = least_pressed_of_all;
  policy.pack = by_pressure<least_pressed_of_all>;
  return policy;
}

Result<PlacementPolicy> placement_policy(std::string_view name) {
  const std::array policies{potential_policy(), first_fit_decreasing_policy(), static_policy(),
                            periodic_repack_policy(), periodic_balance_policy()};
  std::string known;
  for (const PlacementPolicy& policy : policies) {
    if (policy.name == name) return policy;
    known += (known.empty() ? "" : ", ") + std::string(policy.name);
  }
  return make_error(ErrorCode::invalid_input,
                    "placement policy '" + std::string(name) + "' is not known; use one of " + known);
}

}  // namespace sangam
