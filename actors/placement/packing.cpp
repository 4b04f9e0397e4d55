// Loads, potentials, and bins that know what is in them.
#include "actors/placement/packing.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

double sum(const Shares& x) { return x[0] + x[1] + x[2]; }

double dot(const Shares& a, const Shares& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

bool has_room(const Shares& residual, const Shares& v) {
  return v[0] <= residual[0] + kRounding && v[1] <= residual[1] + kRounding && v[2] <= residual[2] + kRounding;
}

/// Larger is better. `saved`: HBM of the item that is there already; a byte that need not be held twice counts
/// like one of alignment.
double score(FitRule rule, const Shares& residual, const Shares& v, double saved) {
  switch (rule) {
    case FitRule::aligned: return alignment(residual, v) + saved;
    case FitRule::dot: return dot(residual, v) + saved;
    case FitRule::tight: return sum(v) - sum(residual) + saved;
    case FitRule::first: break;
  }
  return 0.0;
}

}  // namespace

double potential(const Shares& x) { return dot(x, x) - sum(x) * sum(x) / 3.0; }

double alignment(const Shares& residual, const Shares& v) { return dot(residual, v) - sum(residual) * sum(v) / 3.0; }

Shares load_of(const PackingProblem& problem, KindIndex kind, std::span<const ItemIndex> items) {
  Shares load{};
  std::vector<std::uint32_t> pieces;
  for (const ItemIndex i : items) {
    for (std::size_t d = 0; d < load.size(); ++d) load[d] += problem.items[i].own[d];
    pieces.insert(pieces.end(), problem.items[i].pieces.begin(), problem.items[i].pieces.end());
  }
  std::sort(pieces.begin(), pieces.end());
  pieces.erase(std::unique(pieces.begin(), pieces.end()), pieces.end());
  for (const std::uint32_t piece : pieces) load[0] += problem.pieces[piece];
  load[0] *= problem.kinds[kind].hbm_scale;
  return load;
}

Bins::Bins(const PackingProblem& problem)
    : problem_(&problem),
      packing_(problem.bins.size()),
      states_(problem.bins.size()),
      is_open_(problem.bins.size(), false) {
  for (std::size_t b = 0; b < states_.size(); ++b) states_[b].kind = problem.bins[b];
  std::uint32_t families = 0;
  for (const Item& item : problem.items) {
    double hbm = 0.0;
    for (const std::uint32_t piece : item.pieces) hbm += problem.pieces[piece];
    alone_.push_back(hbm);
    if (item.family != kNoFamily) families = std::max(families, item.family + 1);
  }
  family_bins_.resize(families);
}

Bins::Bins(const PackingProblem& problem, const Packing& packing) : Bins(problem) {
  for (BinIndex b = 0; b < packing.size(); ++b) {
    for (const ItemIndex item : packing[b]) put(b, item);
  }
}

Shares Bins::need(KindIndex kind, ItemIndex item) const {
  Shares v = problem_->items[item].own;
  v[0] = (v[0] + alone_[item]) * problem_->kinds[kind].hbm_scale;
  return v;
}

bool Bins::relates(BinIndex bin, ItemIndex item) const {
  const std::uint32_t family = problem_->items[item].family;
  if (family == kNoFamily) return false;
  return std::any_of(packing_[bin].begin(), packing_[bin].end(),
                     [&](ItemIndex other) { return problem_->items[other].family == family; });
}

Shares Bins::marginal(BinIndex bin, ItemIndex item) const {
  const KindIndex kind = states_[bin].kind;
  if (!relates(bin, item)) return need(kind, item);
  Shares v = problem_->items[item].own;
  for (const std::uint32_t piece : problem_->items[item].pieces) {
    const bool there = std::any_of(packing_[bin].begin(), packing_[bin].end(), [&](ItemIndex other) {
      const auto& pieces = problem_->items[other].pieces;
      return std::binary_search(pieces.begin(), pieces.end(), piece);
    });
    if (!there) v[0] += problem_->pieces[piece];
  }
  v[0] *= problem_->kinds[kind].hbm_scale;
  return v;
}

bool Bins::fits(BinIndex bin, ItemIndex item) const {
  return packing_[bin].size() < problem_->models_max && problem_->holds(states_[bin].kind, item) &&
         has_room(states_[bin].residual, marginal(bin, item));
}

bool Bins::is_over(BinIndex bin) const {
  const Shares& residual = states_[bin].residual;  // Summed in another order than when it was filled.
  return packing_[bin].size() > problem_->models_max ||
         *std::min_element(residual.begin(), residual.end()) < -2 * kRounding;
}

double Bins::damage(BinIndex bin) const {
  double alone = 0.0;
  for (const ItemIndex item : packing_[bin]) alone += potential(need(states_[bin].kind, item));
  return alone <= kRounding ? 0.0 : potential_of(bin) / alone;
}

std::optional<BinIndex> Bins::choose(ItemIndex item, FitRule rule, BinIndex but) {
  std::optional<BinIndex> best;
  double best_score = 0.0;
  const BinIndex home = problem_->items[item].home;
  const auto consider = [&](BinIndex bin, const Shares& v, double saved) {
    const State& state = states_[bin];
    if (!has_room(state.residual, v) || bin == but || !problem_->holds(state.kind, item)) return;
    const double s = score(rule, state.residual, v, saved);
    if (best && s < best_score - kRounding) return;
    if (best && s <= best_score + kRounding && bin != home && (*best == home || *best < bin)) return;
    best = bin;
    best_score = s;
  };
  const std::uint32_t family = problem_->items[item].family;
  std::vector<BinIndex> related;
  if (family != kNoFamily) related = family_bins_[family];
  for (const BinIndex bin : related) {
    if (!is_open_[bin]) continue;
    const Shares v = marginal(bin, item);
    consider(bin, v, need(states_[bin].kind, item)[0] - v[0]);
  }
  std::vector<Shares> needs(problem_->kinds.size());
  for (KindIndex kind = 0; kind < needs.size(); ++kind) needs[kind] = need(kind, item);
  for (const BinIndex bin : open_) {
    if (related.empty() || !relates(bin, item)) consider(bin, needs[states_[bin].kind], 0.0);
    if (rule == FitRule::first && best && related.empty()) break;
  }
  evaluations_ += open_.size() + 1;
  return best;
}

std::optional<BinIndex> Bins::unused_for(ItemIndex item) const {
  std::vector<bool> refuses(problem_->kinds.size());
  for (KindIndex kind = 0; kind < refuses.size(); ++kind) {
    refuses[kind] = !problem_->holds(kind, item) || !has_room({1.0, 1.0, 1.0}, need(kind, item));
  }
  const auto is_free = [&](BinIndex bin) { return packing_[bin].empty() && !refuses[states_[bin].kind]; };
  const auto rank = [&](BinIndex bin) { return problem_->ranks.empty() ? 0 : problem_->ranks[bin]; };
  const BinIndex home = problem_->items[item].home;
  for (BinIndex bin = 0; bin < packing_.size(); ++bin) {
    if (!is_free(bin)) continue;
    return home != kNoBin && is_free(home) && rank(home) == rank(bin) ? home : bin;
  }
  return std::nullopt;
}

void Bins::put(BinIndex bin, ItemIndex item) {
  const Shares v = marginal(bin, item);
  for (std::size_t d = 0; d < v.size(); ++d) states_[bin].residual[d] -= v[d];
  const std::uint32_t family = problem_->items[item].family;
  if (family != kNoFamily && !relates(bin, item)) family_bins_[family].push_back(bin);
  packing_[bin].push_back(item);
  if (packing_[bin].size() == 1) ++used_;
  count_open(bin);
}

void Bins::take(BinIndex bin, ItemIndex item) {
  const auto found = std::find(packing_[bin].begin(), packing_[bin].end(), item);
  SANGAM_ASSERT(found != packing_[bin].end(), bin, item);
  packing_[bin].erase(found);
  if (packing_[bin].empty()) --used_;
  const std::uint32_t family = problem_->items[item].family;
  if (family != kNoFamily && !relates(bin, item)) std::erase(family_bins_[family], bin);
  const Shares load = load_of(*problem_, states_[bin].kind, packing_[bin]);
  for (std::size_t d = 0; d < load.size(); ++d) states_[bin].residual[d] = 1.0 - load[d];
  count_open(bin);
}

void Bins::count_open(BinIndex bin) {
  const bool is_open = !packing_[bin].empty() && packing_[bin].size() < problem_->models_max;
  if (is_open == is_open_[bin]) return;
  is_open_[bin] = is_open;
  const auto at = std::lower_bound(open_.begin(), open_.end(), bin);
  if (is_open) {
    open_.insert(at, bin);
  } else {
    open_.erase(at);
  }
}

}  // namespace sangam
