// A group has a lock of its own: forging one slot takes long, and others need not wait for it.
#include "actors/merger/pool/shelf.hpp"

namespace sangam::merging {
namespace {

std::optional<DenseMatrix> ancestor_of(const Checkpoint* ancestor, const Site& site) {
  if (ancestor == nullptr) return std::nullopt;
  const auto view = ancestor->tensor(site.slot + ".weight");
  if (!view || view->shape != std::vector{site.weights.rows, site.weights.columns}) return std::nullopt;
  return dense_of(*view);
}

}  // namespace

Shelf::Shelf(const Pool& pool, OperatorOptions options, const Checkpoint* ancestor) : pool_(pool), places_(pool.sites().size()) {
  for (const SiteGroup& group : pool.groups()) {
    auto made = std::make_unique<Group>();
    std::vector<GroupMember> members;
    for (const SiteIndex index : group.sites) {
      places_[index] = {groups_.size(), members.size()};
      const Site& site = pool.sites()[index];
      members.push_back({&site.weights, &site.gram});
    }
    made->ancestor = ancestor_of(ancestor, pool.sites()[group.sites.front()]);
    made->forge = std::make_unique<GroupForge>(std::move(members), made->ancestor ? &*made->ancestor : nullptr, options);
    groups_.push_back(std::move(made));
  }
}

Result<const FormedSlot*> Shelf::find(SiteIndex site, const SlotForm& form) {
  const auto [index, member] = places_[site];
  Group& group = *groups_[index];
  const std::lock_guard lock(group.mutex);
  auto& slot = group.made[{site, form}];
  if (slot == nullptr) {
    auto formed = group.forge->form(member, form);
    if (!formed) return formed.error();
    slot = std::make_unique<const FormedSlot>(std::move(*formed));
  }
  return slot.get();
}

Result<std::map<std::string, TensorView>> Shelf::tensors(std::uint32_t model, const PoolState& state) {
  std::map<std::string, TensorView> out;
  const Checkpoint& checkpoint = pool_.models()[model].opened.checkpoint;
  for (const std::string& name : pool_.carried(model)) out.emplace(name, checkpoint.tensor(name).value());
  for (SiteIndex i = 0; i < state.size(); ++i) {
    const Site& site = pool_.sites()[i];
    if (site.model != model) continue;
    if (state[i] == SlotForm()) {
      out.emplace(site.slot + ".weight", checkpoint.tensor(site.slot + ".weight").value());
      continue;
    }
    const auto formed = find(i, state[i]);
    if (!formed) return formed.error();
    for (const SlotTensor& tensor : (*formed)->tensors) out.emplace(site.slot + tensor.suffix, tensor.view());
  }
  return out;
}

Result<std::unique_ptr<Model>> Shelf::model(std::uint32_t model, const PoolState& state, Ops& ops) {
  const auto found = tensors(model, state);
  if (!found) return found.error();
  const auto lookup = [&](std::string_view name) -> Result<TensorView> {
    const auto one = found->find(std::string(name));
    if (one != found->end()) return one->second;
    return make_error(ErrorCode::not_found, "no tensor named " + std::string(name));
  };
  return Model::create(pool_.models()[model].opened.config, lookup, ops);
}

}  // namespace sangam::merging
