// Compares packings by what they save and what they move.
#include "actors/placement/consolidation.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "actors/placement/matching.hpp"

namespace sangam {
namespace {

/// So that items without weights are not moved for nothing.
constexpr double kLeastOverlap = 1e-6;

std::size_t used(const Packing& packing) {
  return std::size_t(std::count_if(packing.begin(), packing.end(), [](const auto& items) { return !items.empty(); }));
}

std::size_t placed(const Packing& packing) {
  std::size_t count = 0;
  for (const auto& items : packing) count += items.size();
  return count;
}

double weights_of(const PackingProblem& problem, const std::vector<ItemIndex>& items) {
  double sum = 0.0;
  for (const ItemIndex item : items) sum += problem.items[item].weights;
  return sum;
}

}  // namespace

double weights_moved(const PackingProblem& problem, const Packing& from, const Packing& to) {
  double moved = 0.0;
  for (std::size_t b = 0; b < to.size(); ++b) {
    std::set<std::uint32_t> there;
    for (const ItemIndex item : from[b]) there.insert(problem.items[item].pieces.begin(), problem.items[item].pieces.end());
    for (const ItemIndex item : to[b]) {
      if (std::find(from[b].begin(), from[b].end(), item) != from[b].end()) continue;
      double missing = problem.items[item].weights;
      for (const std::uint32_t piece : problem.items[item].pieces) {
        if (!there.insert(piece).second) missing -= problem.pieces[piece];
      }
      moved += missing;
    }
  }
  return moved;
}

Packing named_like(const PackingProblem& problem, const Packing& target, const Packing& present,
                   std::size_t exact_max) {
  std::map<ItemIndex, BinIndex> now_at;
  for (BinIndex b = 0; b < present.size(); ++b) {
    for (const ItemIndex item : present[b]) now_at.emplace(item, b);
  }
  Packing named(target.size());
  for (KindIndex kind = 0; kind < problem.kinds.size(); ++kind) {
    std::vector<BinIndex> rows;
    std::vector<BinIndex> columns;
    std::map<BinIndex, std::size_t> column_of;
    for (BinIndex b = 0; b < target.size(); ++b) {
      if (problem.bins[b] != kind) continue;
      column_of.emplace(b, columns.size());
      columns.push_back(b);
      if (!target[b].empty()) rows.push_back(b);
    }
    std::map<std::pair<std::size_t, std::size_t>, double> weights;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const ItemIndex item : target[rows[r]]) {
        const auto at = now_at.find(item);
        if (at == now_at.end() || problem.bins[at->second] != kind) continue;
        weights[{r, column_of.at(at->second)}] += std::max(problem.items[item].weights, kLeastOverlap);
      }
    }
    std::vector<Overlap> overlaps;
    for (const auto& [pair, weight] : weights) overlaps.push_back({pair.first, pair.second, weight});
    const auto columns_by_row = match(rows.size(), columns.size(), std::move(overlaps), exact_max);
    for (std::size_t r = 0; r < rows.size(); ++r) named[columns[columns_by_row[r]]] = target[rows[r]];
  }
  return named;
}

Packing with_bins_emptied(const Bins& start) {
  Bins bins = start;
  const PackingProblem& problem = bins.problem();
  std::vector<std::pair<double, BinIndex>> order;
  for (BinIndex b = 0; b < bins.packing().size(); ++b) {
    if (!bins.packing()[b].empty()) order.emplace_back(weights_of(problem, bins.packing()[b]), b);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [weights, from] : order) {
    const std::vector<ItemIndex> items = bins.packing()[from];
    std::vector<std::pair<ItemIndex, BinIndex>> moved;
    for (const ItemIndex item : items) {
      const auto to = bins.choose(item, FitRule::aligned, from);
      if (!to) break;
      bins.take(from, item);
      bins.put(*to, item);
      moved.emplace_back(item, *to);
    }
    if (moved.size() == items.size()) continue;
    for (const auto& [item, to] : moved) {
      bins.take(to, item);
      bins.put(from, item);
    }
  }
  return bins.packing();
}

std::optional<Packing> consolidated(const Bins& now, const PlacementPolicy& policy, const ConsolidationTerms& terms) {
  if (policy.pack == nullptr) return std::nullopt;
  const PackingProblem& problem = now.problem();
  const Packing& present = now.packing();
  Packing anew = named_like(problem, policy.pack(problem, terms.effort), present, terms.exact_matching_max);
  if (placed(anew) < placed(present)) return std::nullopt;
  if (!policy.weighs_moves || placed(anew) > placed(present)) return anew;
  const auto gain = [&](const Packing& packing) {
    const double saved = double(used(present)) - double(used(packing));
    return saved * terms.pools_per_worker_saved - weights_moved(problem, present, packing);
  };
  Packing emptied = with_bins_emptied(now);
  const double gain_anew = gain(anew);
  const double gain_emptied = gain(emptied);
  if (std::max(gain_anew, gain_emptied) <= kRounding) return std::nullopt;
  return gain_anew > gain_emptied ? std::move(anew) : std::move(emptied);
}

}  // namespace sangam
