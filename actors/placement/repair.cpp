// Tries each part of a bin's items elsewhere and keeps the best.
#include "actors/placement/repair.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace sangam {
namespace {

/// All parts of so many items are tried; of more, those of up to two.
constexpr std::size_t kAllPartsMax = 10;

/// What putting a part elsewhere comes to.
struct Outcome {
  std::size_t dropped = 0;
  std::int64_t bins_added = 0;
  double potential_change = 0.0;
  double moved = 0.0;  ///< Weights.

  [[nodiscard]] bool is_better_than(const Outcome& other) const {
    const auto first = std::tuple(dropped, bins_added);
    if (first != std::tuple(other.dropped, other.bins_added)) return first < std::tuple(other.dropped, other.bins_added);
    if (potential_change < other.potential_change - kRounding) return true;
    return potential_change <= other.potential_change + kRounding && moved < other.moved;
  }
};

struct Move {
  ItemIndex item = 0;
  BinIndex to = kNoBin;
};

struct Attempt {
  std::vector<Move> moves;
  Outcome outcome;
};

std::vector<std::vector<ItemIndex>> parts_of(const std::vector<ItemIndex>& items) {
  std::vector<std::vector<ItemIndex>> parts;
  if (items.size() > kAllPartsMax) {
    for (std::size_t a = 0; a < items.size(); ++a) {
      parts.push_back({items[a]});
      for (std::size_t b = a + 1; b < items.size(); ++b) parts.push_back({items[a], items[b]});
    }
    return parts;
  }
  for (std::uint32_t mask = 1; mask < 1U << items.size(); ++mask) {
    auto& part = parts.emplace_back();
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (mask >> i & 1U) part.push_back(items[i]);
    }
  }
  return parts;
}

double size_of(const PackingProblem& problem, ItemIndex item) {
  const Shares& own = problem.items[item].own;
  return std::max({own[0] + problem.items[item].weights, own[1], own[2]});
}

/// Moves the part out of `bin`, the largest first, and says what came of it. The caller decides whether it stays.
Attempt move_out(Bins& bins, BinIndex bin, std::vector<ItemIndex> part, bool may_open) {
  const PackingProblem& problem = bins.problem();
  std::sort(part.begin(), part.end(), [&](ItemIndex a, ItemIndex b) { return size_of(problem, a) > size_of(problem, b); });
  Attempt attempt;
  const std::size_t used = bins.used();
  std::map<BinIndex, double> potentials{{bin, bins.potential_of(bin)}};
  for (const ItemIndex item : part) bins.take(bin, item);
  for (const ItemIndex item : part) {
    std::optional<BinIndex> to = bins.choose(item, FitRule::aligned, bin);
    if (!to && may_open) to = bins.unused_for(item);
    if (to == bin) to.reset();
    if (to) {
      potentials.emplace(*to, bins.potential_of(*to));
      bins.put(*to, item);
      attempt.outcome.moved += problem.items[item].weights;
    } else {
      ++attempt.outcome.dropped;
    }
    attempt.moves.push_back({item, to.value_or(kNoBin)});
  }
  attempt.outcome.bins_added = std::int64_t(bins.used()) - std::int64_t(used);
  for (const auto& [touched, before] : potentials) attempt.outcome.potential_change += bins.potential_of(touched) - before;
  return attempt;
}

void undo(Bins& bins, BinIndex bin, const Attempt& attempt) {
  for (const Move& move : attempt.moves) {
    if (move.to != kNoBin) bins.take(move.to, move.item);
  }
  for (const Move& move : attempt.moves) bins.put(bin, move.item);
}

/// The best part to move out of `bin` among those whose going leaves the bin as it must be.
std::optional<Attempt> best_part(Bins& bins, BinIndex bin, bool may_open) {
  std::optional<Attempt> best;
  for (const auto& part : parts_of(bins.packing()[bin])) {
    Attempt attempt = move_out(bins, bin, part, may_open);
    const bool holds_less = !bins.is_over(bin);
    undo(bins, bin, attempt);
    if (!holds_less) continue;
    if (!best || attempt.outcome.is_better_than(best->outcome)) best = std::move(attempt);
  }
  return best;
}

void redo(Bins& bins, BinIndex bin, const Attempt& attempt) {
  for (const Move& move : attempt.moves) bins.take(bin, move.item);
  for (const Move& move : attempt.moves) {
    if (move.to != kNoBin) bins.put(move.to, move.item);
  }
}

}  // namespace

bool repair(Bins& bins, BinIndex bin, double alpha) {
  if (bins.packing()[bin].empty() || bins.damage(bin) <= alpha) return false;
  const std::optional<Attempt> best = best_part(bins, bin, false);
  if (!best || best->outcome.dropped > 0) return false;
  if (best->outcome.bins_added >= 0 && best->outcome.potential_change >= -kRounding) return false;
  redo(bins, bin, *best);
  return true;
}

std::vector<ItemIndex> relieve(Bins& bins, BinIndex bin) {
  std::vector<ItemIndex> dropped;
  while (bins.is_over(bin)) {
    const std::vector<ItemIndex> items = bins.packing()[bin];
    const std::optional<Attempt> best = best_part(bins, bin, true);
    if (!best) {  // More than two have to go: one now.
      dropped.push_back(items.back());
      bins.take(bin, items.back());
      continue;
    }
    redo(bins, bin, *best);
    for (const Move& move : best->moves) {
      if (move.to == kNoBin) dropped.push_back(move.item);
    }
  }
  return dropped;
}

}  // namespace sangam
