// Every form of every slot that has been asked for, made once, and models made of them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/merger/forge/group_forge.hpp"
#include "actors/merger/pool/pool.hpp"

namespace sangam::merging {

/// From many threads at once; two groups are forged side by side.
class Shelf {
 public:
  /// `pool` outlives the shelf. `ancestor`: what the models of a group were tuned from, by the slot's name; may be
  /// empty.
  Shelf(const Pool& pool, OperatorOptions options, const Checkpoint* ancestor);

  /// Any form but a slot's own weights as they are. Valid as long as the shelf.
  [[nodiscard]] Result<const FormedSlot*> find(SiteIndex site, const SlotForm& form);
  /// The model with its sites as `state` has them. The shelf and `ops` outlive it.
  [[nodiscard]] Result<std::unique_ptr<Model>> model(std::uint32_t model, const PoolState& state, Ops& ops);
  /// All tensors that it uses, by name: those of its sites in these forms, the others as its checkpoint has them.
  [[nodiscard]] Result<std::map<std::string, TensorView>> tensors(std::uint32_t model, const PoolState& state);

  [[nodiscard]] const Pool& pool() const { return pool_; }

 private:
  struct Group {
    std::mutex mutex;
    std::optional<DenseMatrix> ancestor;
    std::unique_ptr<GroupForge> forge;
    std::map<std::pair<SiteIndex, SlotForm>, std::unique_ptr<const FormedSlot>> made;
  };

  const Pool& pool_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  ///< Of a site: its group, and which member it is.
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace sangam::merging
