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
#include "storage/hash/digest.hpp"

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
  Bytes bytes{};     ///< As its checkpoint stores it.
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
  /// Reads all weights and computes with the profile's items what slots see, on `threads`. Refused where weights are no
  /// finite numbers or coded already, and where a model has too few items.
  [[nodiscard]] static Result<std::unique_ptr<const Pool>> make(std::vector<PoolModel> models, int threads);

  [[nodiscard]] const std::vector<PoolModel>& models() const { return models_; }
  [[nodiscard]] const std::vector<Site>& sites() const { return sites_; }
  [[nodiscard]] const std::vector<SiteGroup>& groups() const { return groups_; }
  /// Names of the tensors that a model uses and that are no sites: they stay as they are.
  [[nodiscard]] const std::vector<std::string>& carried(std::uint32_t model) const { return carried_[model]; }
  /// Names a model's weights and configuration.
  [[nodiscard]] const Digest& content(std::uint32_t model) const { return contents_[model]; }
  /// Of all tensors that the models use.
  [[nodiscard]] Bytes original() const { return original_; }
  /// Of those that are no sites; equal ones are counted once.
  [[nodiscard]] Bytes fixed() const { return fixed_; }

 private:
  Pool() = default;
  Result<void> add_tensors(std::uint32_t model);
  Result<void> see_inputs(std::uint32_t model);
  void group_sites();
  void count_bytes();

  std::vector<PoolModel> models_;
  std::vector<Site> sites_;
  std::vector<SiteGroup> groups_;
  std::vector<std::vector<std::string>> carried_;
  std::vector<Digest> contents_;
  Bytes original_{};
  Bytes fixed_{};
};

}  // namespace sangam::merging
