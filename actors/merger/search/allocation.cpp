// Every variant of a group is tried with each member at its best option.
#include "actors/merger/search/allocation.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

struct Choice {
  double cost = std::numeric_limits<double>::infinity();
  const GroupVariant* variant = nullptr;
  std::vector<const FormOption*> options;  // By member.
};

Choice priced(const PoolOptions& pool, const SlotGroup& group, const GroupVariant& variant, const Prices& prices) {
  Choice choice{double(variant.canonical.count()), &variant, {}};
  for (std::size_t member = 0; member < group.sites.size(); ++member) {
    const double price = prices[pool.model_of[group.sites[member]]];
    const FormOption* best = nullptr;
    double least = 0.0;
    for (const FormOption& option : variant.members[member]) {
      const double cost = double(option.bytes.count()) + price * option.damage;
      if (best != nullptr && cost >= least) continue;
      best = &option;
      least = cost;
    }
    SANGAM_ASSERT(best != nullptr, member);
    choice.cost += least;
    choice.options.push_back(best);
  }
  return choice;
}

const FormOption* option_of(const std::vector<FormOption>& options, const SlotForm& form) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const FormOption& o) { return o.form == form; });
  return found == options.end() ? nullptr : &*found;
}

/// Of a variant with the forms of `state`; none where a member's form is not among its options.
std::optional<Bytes> bytes_of(const SlotGroup& group, const GroupVariant& variant, const PoolState& state) {
  Bytes bytes = variant.canonical;
  for (std::size_t member = 0; member < group.sites.size(); ++member) {
    const FormOption* option = option_of(variant.members[member], state[group.sites[member]]);
    if (option == nullptr) return std::nullopt;
    bytes += option->bytes;
  }
  return bytes;
}

}  // namespace

const GroupVariant* variant_of(const SlotGroup& group, const PoolState& state) {
  for (const GroupVariant& variant : group.variants) {
    if (bytes_of(group, variant, state)) return &variant;
  }
  return nullptr;
}

Bytes bytes_of(const PoolOptions& pool, const PoolState& state) {
  Bytes bytes = pool.fixed;
  for (const SlotGroup& group : pool.groups) {
    const GroupVariant* variant = variant_of(group, state);
    SANGAM_ASSERT(variant != nullptr, group.sites.size());
    bytes += *bytes_of(group, *variant, state);
  }
  return bytes;
}

Allocation allocate(const PoolOptions& pool, const Prices& prices) {
  Allocation out{PoolState(pool.model_of.size()), pool.fixed, std::vector<double>(pool.models, 0.0)};
  for (const SlotGroup& group : pool.groups) {
    Choice best;
    for (const GroupVariant& variant : group.variants) {
      Choice choice = priced(pool, group, variant, prices);
      if (choice.cost < best.cost) best = std::move(choice);
    }
    out.bytes += best.variant->canonical;
    for (std::size_t member = 0; member < group.sites.size(); ++member) {
      const SiteIndex site = group.sites[member];
      out.state[site] = best.options[member]->form;
      out.bytes += best.options[member]->bytes;
      out.damage[pool.model_of[site]] += best.options[member]->damage;
    }
  }
  return out;
}

}  // namespace sangam::merging
