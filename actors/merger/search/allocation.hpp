// What each slot could be, what that takes and harms, and the cheapest choice at given prices of harm.
#pragma once

#include <span>
#include <vector>

#include "actors/merger/search/slot_form.hpp"
#include "messages/vocabulary/quantity.hpp"

namespace sangam::merging {

/// One form of one site.
struct FormOption {
  SlotForm form;
  Bytes bytes{};        ///< Of this site alone; a canonical is counted by its variant.
  double damage = 0.0;  ///< Predicted, in the unit of its model; 0: as the original.
};

/// One way to divide a group into those that share and those that do not.
struct GroupVariant {
  Bytes canonical{};
  std::vector<std::vector<FormOption>> members;  ///< By member: at least one option each.
};

struct SlotGroup {
  std::vector<SiteIndex> sites;
  std::vector<GroupVariant> variants;  ///< The first: everybody's own weights, as they are.
};

/// All that a pool could become; each site is in one group.
struct PoolOptions {
  std::vector<std::uint32_t> model_of;  ///< By site.
  std::uint32_t models = 0;
  Bytes fixed{};     ///< Of what no group can change.
  Bytes original{};  ///< Of all models as they are.
  std::vector<SlotGroup> groups;
};

/// Bytes that a unit of damage is worth, by model.
using Prices = std::vector<double>;

struct Allocation {
  PoolState state;
  Bytes bytes{};               ///< Of the pool.
  std::vector<double> damage;  ///< Predicted, by model.
};

/// Least bytes plus priced damage, group by group: exact, since groups are independent. Of equals, the first.
[[nodiscard]] Allocation allocate(const PoolOptions& options, const Prices& prices);

/// The variant whose options have the state's forms; null where there is none.
[[nodiscard]] const GroupVariant* variant_of(const SlotGroup& group, const PoolState& state);

/// Of a state whose forms are among the options; a canonical counts once.
[[nodiscard]] Bytes bytes_of(const PoolOptions& options, const PoolState& state);

}  // namespace sangam::merging
