// Forms first, then probes: one model at a time computes, several models side by side.
#include "actors/merger/pool/survey.hpp"

#include <algorithm>
#include <atomic>
#include <map>

#include "actors/merger/pool/parallel.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

constexpr const char* kTable = "model.embed_tokens";
constexpr double kHarmless = 0.1;  // A slot that a few hundred items do not show to matter is not free: this share of the mean.
constexpr double kUnseen = 0.02;
constexpr double kDangerLeast = 1e-7;  // What a form does to a model is never taken to be nothing.

/// A form, whoever shares.
SlotForm kind_of(SlotForm form) {
  form.sharing = 0;
  if (form.group >= 0) form.group = 0;
  return form;
}

/// Masks of members that may share a canonical: all of them; with `subsets`, also what is left when the one whose
/// outputs a common canonical fits worst has gone, and so on down to two.
Result<std::vector<std::uint32_t>> sharers(Shelf& shelf, std::size_t group, bool subsets) {
  const auto& sites = shelf.pool().groups()[group].sites;
  std::vector<std::uint32_t> masks;
  auto mask = std::uint32_t((std::uint64_t(1) << sites.size()) - 1);
  while (std::popcount(mask) >= 2) {
    masks.push_back(mask);
    if (!subsets) break;
    std::size_t worst = 0;
    double most = -1.0;
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if ((mask >> i & 1u) == 0) continue;
      const auto formed = shelf.find(sites[i], {std::int32_t(group), mask, std::nullopt, std::nullopt, 0, false});
      if (!formed) return formed.error();
      if ((*formed)->error <= most) continue;
      most = (*formed)->error;
      worst = i;
    }
    mask &= ~(1u << worst);
  }
  return masks;
}

class Survey {
 public:
  Survey(Shelf& shelf, const FormMenu& menu, int threads, const Progress& progress)
      : shelf_(shelf), menu_(menu), threads_(threads), progress_(progress) {}

  Result<PoolOptions> run() {
    prepare();
    const auto form = [&](std::size_t g) { return add_forms(g); };
    if (auto done = in_parallel(options_.groups.size(), threads_, form); !done) return done.error();
    done_ = 0;
    const auto probe = [&](std::size_t m) { return probe_model(std::uint32_t(m)); };
    if (auto done = in_parallel(options_.models, threads_, probe); !done) return done.error();
    return std::move(options_);
  }

 private:
  void prepare() {
    const Pool& pool = shelf_.pool();
    for (const Site& site : pool.sites()) options_.model_of.push_back(site.model);
    options_.models = std::uint32_t(pool.models().size());
    options_.fixed = pool.fixed();
    options_.original = pool.original();
    for (const SiteGroup& group : pool.groups()) options_.groups.push_back({group.sites, {}});
  }

  [[nodiscard]] bool is_table(SiteIndex site) const { return shelf_.pool().sites()[site].slot == kTable; }

  /// Damage holds the error until the probes are done.
  Result<FormOption> option(SiteIndex site, const SlotForm& form, Bytes* canonical) {
    const auto formed = shelf_.find(site, form);
    if (!formed) return formed.error();
    if (canonical != nullptr) *canonical = Bytes(std::int64_t((*formed)->canonical_bytes));
    return FormOption{form, Bytes(std::int64_t((*formed)->own_bytes)), (*formed)->error};
  }

  Result<std::vector<FormOption>> own_forms(SiteIndex index) {
    const Site& site = shelf_.pool().sites()[index];
    std::vector<FormOption> out{{{}, site.bytes, 0.0}};
    for (const RowCode code : menu_.own) {
      auto made = option(index, {-1, 0, code, std::nullopt, 0, false}, nullptr);
      if (!made) return made.error();
      out.push_back(*made);
    }
    return out;
  }

  Result<void> add_forms(std::size_t g) {
    SlotGroup& group = options_.groups[g];
    std::vector<std::vector<FormOption>> own;
    for (const SiteIndex site : group.sites) {
      auto forms = own_forms(site);
      if (!forms) return forms.error();
      own.push_back(std::move(*forms));
    }
    group.variants.push_back({Bytes(0), own});
    const auto masks = sharers(shelf_, g, menu_.subsets);
    if (!masks) return masks.error();
    for (const std::uint32_t mask : *masks) {
      for (const auto& code : menu_.canonicals) {
        if (auto added = add_variant(g, mask, code, own); !added) return added;
      }
    }
    report("forming slots", ++done_, options_.groups.size());
    return {};
  }

  Result<void> add_variant(std::size_t g, std::uint32_t mask, std::optional<RowCode> code,
                           const std::vector<std::vector<FormOption>>& own) {
    SlotGroup& group = options_.groups[g];
    GroupVariant variant;
    for (std::size_t i = 0; i < group.sites.size(); ++i) {
      if ((mask >> i & 1u) == 0) {
        variant.members.push_back(own[i]);
        continue;
      }
      std::vector<FormOption> forms;
      for (const Correction& correction : menu_.corrections) {
        // Rows of a table are looked up, too: nothing of it may depend on an input.
        if (is_table(group.sites[i]) && (correction.affine || correction.rank > 0)) continue;
        auto made = option(group.sites[i], {std::int32_t(g), mask, code, correction.delta, correction.rank, correction.affine}, &variant.canonical);
        if (!made) return made.error();
        forms.push_back(*made);
      }
      if (forms.empty()) return {};  // A table for which no correction of the menu is to be had.
      variant.members.push_back(std::move(forms));
    }
    group.variants.push_back(std::move(variant));
    return {};
  }

  Result<double> danger(std::uint32_t model, const PoolState& state, Ops& ops) {
    const auto made = shelf_.model(model, state, ops);
    if (!made) return made.error();
    return danger_of(Evaluator(**made).score(shelf_.pool().models()[model].items.profile));
  }

  Result<void> probe_model(std::uint32_t model) {
    const auto ops = make_cpu_ops({.threads = 1});
    if (!ops) return ops.error();
    const PoolState as_it_is(options_.model_of.size());
    const auto before = danger(model, as_it_is, **ops);
    if (!before) return before.error();
    std::map<SiteIndex, double> harms, errors;
    double mean = 0.0;
    for (SiteIndex site = 0; site < options_.model_of.size(); ++site) {
      if (options_.model_of[site] != model) continue;
      PoolState state = as_it_is;
      state[site] = {-1, 0, RowCode::b2, std::nullopt, 0, false};
      const auto formed = shelf_.find(site, state[site]);
      if (!formed) return formed.error();
      const auto now = danger(model, state, **ops);
      if (!now) return now.error();
      harms[site] = std::max(*now - *before, kDangerLeast);
      errors[site] = std::max((*formed)->error, 1e-12);
      mean += harms[site];
      report("probing slots", ++done_, options_.model_of.size());
    }
    mean /= double(harms.size());
    std::map<SiteIndex, double> sensitivity;  // Danger a unit of error.
    for (const auto& [site, harm] : harms) sensitivity[site] = std::max(harm, kHarmless * mean) / errors[site];
    return weigh(model, sensitivity, *before, **ops);
  }

  /// Every option of the model, by kind.
  std::map<SlotForm, std::vector<std::pair<SiteIndex, FormOption*>>> by_kind(std::uint32_t model) {
    std::map<SlotForm, std::vector<std::pair<SiteIndex, FormOption*>>> out;
    for (SlotGroup& group : options_.groups) {
      for (std::size_t i = 0; i < group.sites.size(); ++i) {
        if (options_.model_of[group.sites[i]] != model) continue;
        for (GroupVariant& variant : group.variants) {
          for (FormOption& option : variant.members[i]) {
            if (option.form != SlotForm()) out[kind_of(option.form)].emplace_back(group.sites[i], &option);
          }
        }
      }
    }
    return out;
  }

  Result<void> weigh(std::uint32_t model, const std::map<SiteIndex, double>& sensitivity, double before, Ops& ops) {
    for (auto& [kind, found] : by_kind(model)) {
      PoolState everywhere(options_.model_of.size());
      std::map<SiteIndex, double> expected;  // Of the first form of this kind at each site: who shares most.
      for (const auto& [site, option] : found) {
        if (!expected.try_emplace(site, sensitivity.at(site) * option->damage).second) continue;
        everywhere[site] = option->form;
      }
      double sum = 0.0;
      for (const auto& [site, harm] : expected) sum += harm;
      const auto now = danger(model, everywhere, ops);
      if (!now) return now.error();
      // What the profile's items do not show, the gate's may: harm is never taken to be far below what it should be.
      const double measured = std::max({*now - before, kUnseen * sum, kDangerLeast});
      for (const auto& [site, option] : found) option->damage *= sum > 0.0 ? sensitivity.at(site) * measured / sum : 0.0;
    }
    return {};
  }

  void report(const char* phase, std::size_t done, std::size_t all) {
    if (progress_) progress_(phase, double(done) / double(all));
  }

  Shelf& shelf_;
  const FormMenu& menu_;
  int threads_;
  const Progress& progress_;
  PoolOptions options_;
  std::atomic<std::size_t> done_ = 0;
};

}  // namespace

Result<PoolOptions> survey(Shelf& shelf, const FormMenu& menu, int threads, const Progress& progress) {
  return Survey(shelf, menu, threads, progress).run();
}

}  // namespace sangam::merging
