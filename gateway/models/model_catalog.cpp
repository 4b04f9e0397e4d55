// Names to models.
#include "gateway/models/model_catalog.hpp"

namespace sangam {

Result<ModelCatalog> ModelCatalog::load(const std::vector<ServedModel>& models, const ModelReader& read) {
  ModelCatalog catalog;
  for (const ServedModel& served : models) {
    const OfferedModel& model = catalog.models_.emplace_back(read(served));
    std::vector<std::string> names = served.aliases;
    names.insert(names.begin(), served.id.text());
    for (const std::string& name : names) {
      const auto [at, fresh] = catalog.names_.emplace(name, &model);
      if (fresh) continue;
      return make_error(ErrorCode::invalid_input, "the model name '" + name + "' is claimed by both '" +
                                                      at->second->id.text() + "' and '" + served.id.text() +
                                                      "'; rename the model or drop the alias");
    }
  }
  return catalog;
}

const OfferedModel* ModelCatalog::find(std::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : found->second;
}

std::vector<ModelId> ModelCatalog::ids() const {
  std::vector<ModelId> ids;
  for (const OfferedModel& model : models_) ids.push_back(model.id);
  return ids;
}

}  // namespace sangam
