// Rounds of proposals; each phase ends by itself, so a search of bounded rounds is a bounded search.
#include "actors/merger/search/price_search.hpp"

#include <algorithm>
#include <cmath>

#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

constexpr double kBargain = 0.3;
constexpr double kStep = 0.3;    // The first one makes a price twice as high.
constexpr double kNarrow = 0.3;  // A range like this has been found, and what fails in it did not fail before.

}  // namespace

PriceSearch::PriceSearch(const PoolOptions& options, const PriceSearchOptions& search)
    : options_(options),
      search_(search),
      ranges_(options.models, {std::log10(search.price_least), std::log10(search.price_most), kStep}),
      refinements_(options.models),
      best_(options.model_of.size()),
      best_bytes_(options.original) {}

Prices PriceSearch::prices() const {
  Prices prices;
  for (const Range& range : ranges_) {
    prices.push_back(std::pow(10.0, phase_ == Phase::bisect ? 0.5 * (range.fails + range.passes) : range.passes));
  }
  return prices;
}

std::optional<PoolState> PriceSearch::next() {
  if (phase_ == Phase::bisect || phase_ == Phase::mend) {
    proposed_ = allocate(options_, prices()).state;
    return proposed_;
  }
  if (phase_ == Phase::regroup) {
    if (auto state = regrouped()) return state;
    begin_refining();
  }
  if (phase_ == Phase::refine) {
    if (auto state = refined()) return state;
    phase_ = Phase::done;
  }
  return std::nullopt;
}

void PriceSearch::hear(std::span<const Verdict> verdicts) {
  SANGAM_ASSERT(verdicts.size() == options_.models, verdicts.size(), options_.models);
  keep_if_better(proposed_, verdicts);
  ++round_;
  if (phase_ == Phase::regroup) return hear_regroupings(verdicts);
  if (phase_ == Phase::refine) return hear_refinements(verdicts);
  hear_prices(verdicts);
}

void PriceSearch::keep_if_better(const PoolState& state, std::span<const Verdict> verdicts) {
  if (!std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.accepted; })) return;
  const Bytes bytes = bytes_of(options_, state);
  if (bytes >= best_bytes_) return;
  best_ = state;
  best_bytes_ = bytes;
}

void PriceSearch::hear_prices(std::span<const Verdict> verdicts) {
  bool all = true;
  for (std::size_t m = 0; m < verdicts.size(); ++m) {
    Range& range = ranges_[m];
    all = all && verdicts[m].accepted;
    const double middle = 0.5 * (range.fails + range.passes);
    if (phase_ == Phase::bisect) (verdicts[m].accepted ? range.passes : range.fails) = middle;
    if (verdicts[m].accepted || (phase_ == Phase::bisect && range.passes - range.fails > kNarrow)) continue;
    range.passes += range.step;
    range.step *= 2.0;
  }
  if (phase_ == Phase::bisect && round_ == search_.rounds) {
    phase_ = Phase::mend;
    round_ = 0;
  } else if (phase_ == Phase::mend && (all || round_ == search_.mends_max)) {
    begin_regrouping();
  }
}

void PriceSearch::begin_regrouping() {
  phase_ = Phase::regroup;
  round_ = 0;
  group_batch_ = std::size_t(search_.batch);
}

/// Each member in its best form of that variant, at somewhat lower prices than those that have passed: at these nothing
/// is better than what is.
PriceSearch::Regrouping PriceSearch::regrouping(std::size_t index, std::size_t variant_index, const Prices& prices) const {
  const SlotGroup& group = options_.groups[index];
  const GroupVariant& now = *variant_of(group, best_);
  const GroupVariant& variant = group.variants[variant_index];
  Regrouping out{index, variant_index, {}, double((now.canonical - variant.canonical).count()), 0.0};
  for (std::size_t member = 0; member < group.sites.size(); ++member) {
    const SiteIndex site = group.sites[member];
    const double price = prices[options_.model_of[site]];
    const auto cost = [&](const FormOption& o) { return double(o.bytes.count()) + kBargain * price * o.damage; };
    const auto& forms = variant.members[member];
    const auto best = std::min_element(forms.begin(), forms.end(), [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
    const auto& mine = now.members[member];
    const auto before = std::find_if(mine.begin(), mine.end(), [&](const FormOption& o) { return o.form == best_[site]; });
    out.to.push_back(best->form);
    out.saved += double((before->bytes - best->bytes).count());
    out.harm += price * std::max(best->damage - before->damage, 0.0);
  }
  return out;
}

/// Of each group the best one that saves bytes; best first.
std::vector<PriceSearch::Regrouping> PriceSearch::regroupings() const {
  const Prices paid = prices();
  std::vector<Regrouping> all;
  for (std::size_t g = 0; g < options_.groups.size(); ++g) {
    const GroupVariant* now = variant_of(options_.groups[g], best_);
    std::optional<Regrouping> best;
    for (std::size_t v = 0; v < options_.groups[g].variants.size(); ++v) {
      if (&options_.groups[g].variants[v] == now || rejected_groups_.contains({g, v})) continue;
      Regrouping one = regrouping(g, v, paid);
      if (one.saved > 0.0 && (!best || one.saved * best->harm > best->saved * one.harm)) best = std::move(one);
    }
    if (best) all.push_back(std::move(*best));
  }
  std::stable_sort(all.begin(), all.end(), [](const Regrouping& a, const Regrouping& b) { return a.saved * b.harm > b.saved * a.harm; });
  return all;
}

std::optional<PoolState> PriceSearch::regrouped() {
  if (round_ >= search_.regroupings_max) return std::nullopt;
  tried_groups_ = regroupings();
  if (tried_groups_.empty()) return std::nullopt;
  if (tried_groups_.size() > group_batch_) tried_groups_.resize(group_batch_);
  proposed_ = best_;
  for (const Regrouping& one : tried_groups_) {
    const SlotGroup& group = options_.groups[one.group];
    for (std::size_t member = 0; member < group.sites.size(); ++member) proposed_[group.sites[member]] = one.to[member];
  }
  return proposed_;
}

/// A canonical touches all who share it, so a batch is accepted by all or not at all.
void PriceSearch::hear_regroupings(std::span<const Verdict> verdicts) {
  if (std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.accepted; })) {
    group_batch_ *= 2;
  } else if (tried_groups_.size() == 1) {
    rejected_groups_.emplace(tried_groups_[0].group, tried_groups_[0].variant);
  } else {
    group_batch_ = std::max<std::size_t>(1, tried_groups_.size() / 2);
  }
}

void PriceSearch::begin_refining() {
  phase_ = search_.refinements_max > 0 ? Phase::refine : Phase::done;
  round_ = 0;
  for (Refinement& refinement : refinements_) refinement.batch = std::size_t(search_.batch);
}

/// Of each slot the next form that takes fewer bytes at the least harm a byte, within its group's variant; best first.
std::vector<PriceSearch::Move> PriceSearch::moves_of(std::uint32_t model) const {
  std::vector<Move> moves;
  for (const SlotGroup& group : options_.groups) {
    const GroupVariant* variant = variant_of(group, best_);
    for (std::size_t member = 0; member < group.sites.size(); ++member) {
      const SiteIndex site = group.sites[member];
      if (options_.model_of[site] != model) continue;
      const auto& forms = variant->members[member];
      const auto now = std::find_if(forms.begin(), forms.end(), [&](const FormOption& o) { return o.form == best_[site]; });
      std::optional<Move> next;
      for (const FormOption& option : forms) {
        if (option.bytes >= now->bytes || rejected_.contains({site, option.form})) continue;
        const Move move{site, option.form, double((now->bytes - option.bytes).count()),
                        std::max(option.damage - now->damage, 0.0)};
        if (!next || move.saved * next->harm > next->saved * move.harm) next = move;
      }
      if (next) moves.push_back(*next);
    }
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Move& a, const Move& b) { return a.saved * b.harm > b.saved * a.harm; });
  return moves;
}

std::optional<PoolState> PriceSearch::refined() {
  if (round_ >= search_.refinements_max) return std::nullopt;
  PoolState state = best_;
  bool any = false;
  for (std::uint32_t model = 0; model < options_.models; ++model) {
    Refinement& refinement = refinements_[model];
    refinement.tried.clear();
    if (refinement.ended) continue;
    refinement.tried = moves_of(model);
    if (refinement.tried.size() > refinement.batch) refinement.tried.resize(refinement.batch);
    refinement.ended = refinement.tried.empty();
    any = any || !refinement.ended;
    for (const Move& move : refinement.tried) state[move.site] = move.to;
  }
  if (!any) return std::nullopt;
  proposed_ = std::move(state);
  return proposed_;
}

/// Models do not touch each other here, so those that pass keep what they have tried, whatever became of the others.
void PriceSearch::hear_refinements(std::span<const Verdict> verdicts) {
  PoolState kept = best_;
  for (std::uint32_t model = 0; model < options_.models; ++model) {
    Refinement& refinement = refinements_[model];
    if (refinement.tried.empty()) continue;
    if (verdicts[model].accepted) {
      for (const Move& move : refinement.tried) kept[move.site] = move.to;
      refinement.batch *= 2;
    } else if (refinement.tried.size() == 1) {
      rejected_.emplace(refinement.tried[0].site, refinement.tried[0].to);
    } else {
      refinement.batch = std::max<std::size_t>(1, refinement.tried.size() / 2);
    }
  }
  best_ = std::move(kept);
  best_bytes_ = bytes_of(options_, best_);
}

std::string PriceSearch::phase() const {
  const auto of = [&](const char* name, int all) { return std::string(name) + " " + std::to_string(round_ + 1) + " of " + std::to_string(all); };
  switch (phase_) {
    case Phase::bisect: return of("prices, round", search_.rounds);
    case Phase::mend: return of("prices together, try", search_.mends_max);
    case Phase::regroup: return of("group by group, round", search_.regroupings_max);
    case Phase::refine: return of("slot by slot, round", search_.refinements_max);
    case Phase::done: break;
  }
  return "done";
}

}  // namespace sangam::merging
