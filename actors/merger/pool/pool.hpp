// The models that are to be merged: their slots, the items that judge them, and what their slots see.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/merger/evaluation/evaluator.hpp"
#include "actors/merger/evaluation/input_statistics.hpp"
#include "actors/merger/search/slot_form.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "storage/checkpoint/model_folder.hpp"

namespace sangam::merging {

/// Three random samples of a task's items, disjoint. What the profile sees steers; what the gate sees accepts and
/// rejects; nothing sees the shadow items before the end.
struct JudgedItems {
  std::vector<AnswerKey> profile;
  std::vector<AnswerKey> gate;
  std::vector<AnswerKey> shadow;
};

struct PoolModel {
  ModelId model;
  ModelFolder opened;
  JudgedItems items;
  double budget = 2.0;  ///< Points that it may lose.
};

/// One slot of one model that may be stored in another form.
struct Site {
  std::uint32_t model = 0;
  std::string slot;  ///< "model.layers.0.mlp.up_proj"
  DType dtype = DType::bf16;
  DenseMatrix weights;
  Gram gram;
};

/// Slots that may share: equal in name and shape, one a model, in the order of the models.
struct SiteGroup {
  std::vector<SiteIndex> sites;
};

/// Immutable once it is made.
class Pool {
 public:
  /// Reads all weights that may be merged and computes with the profile's items what they see, on `threads`. Refused
  /// where weights are no numbers or a model has no items.
  [[nodiscard]] static Result<std::unique_ptr<const Pool>> make(std::vector<PoolModel> models, int threads);

  [[nodiscard]] const std::vector<PoolModel>& models() const { return models_; }
  [[nodiscard]] const std::vector<Site>& sites() const { return sites_; }
  [[nodiscard]] const std::vector<SiteGroup>& groups() const { return groups_; }
  /// Of all tensors of all models, as their checkpoints have them.
  [[nodiscard]] Bytes original() const { return original_; }
  /// Of those that are no sites; equal ones are counted once.
  [[nodiscard]] Bytes fixed() const { return fixed_; }

 private:
  Pool() = default;
  Result<void> add_sites(std::uint32_t model);
  void group_sites();
  void count_bytes();

  std::vector<PoolModel> models_;
  std::vector<Site> sites_;
  std::vector<SiteGroup> groups_;
  Bytes original_{};
  Bytes fixed_{};
};

}  // namespace sangam::merging
