// The models that this gateway offers, by every name that clients may use.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/api/offered_model.hpp"
#include "gateway/options.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Reads a model's tokenizer, chat template, defaults and context; on failure the model is broken, and says
/// why.
using ModelReader = std::function<OfferedModel(const ServedModel&)>;

/// Immutable, hence shared by threads.
class ModelCatalog {
 public:
  /// Fails if two models claim one name: whichever of them answered would surprise somebody.
  [[nodiscard]] static Result<ModelCatalog> load(const std::vector<ServedModel>& models,
                                                 const ModelReader& read);

  /// By id or alias; null where nobody has that name.
  [[nodiscard]] const OfferedModel* find(std::string_view name) const;
  /// The only one there is, or null: what a request that names no model may mean.
  [[nodiscard]] const OfferedModel* only() const { return models_.size() == 1 ? &models_.front() : nullptr; }
  [[nodiscard]] const std::deque<OfferedModel>& all() const { return models_; }
  /// Ids and aliases in order.
  [[nodiscard]] const std::map<std::string, const OfferedModel*, std::less<>>& names() const {
    return names_;
  }
  [[nodiscard]] std::vector<ModelId> ids() const;

 private:
  std::deque<OfferedModel> models_;  // A deque: names_ points into it, also after a move.
  std::map<std::string, const OfferedModel*, std::less<>> names_;
};

/// Reads a folder as Hugging Face lays it out.
[[nodiscard]] OfferedModel read_offered_model(const ServedModel& served);

}  // namespace sangam
