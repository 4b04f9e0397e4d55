// A runner that keeps the catalog: what each model's bytes were when they were last loaded.
#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "actors/worker/runner.hpp"
#include "storage/store/catalog.hpp"

namespace sangam {

/// Wraps `runner`: each load is entered into the catalog of `store`, synced before the model serves, and one
/// whose weights are not those of the last time says so in its warnings. A load that cannot be entered fails.
/// `store` outlives the result.
[[nodiscard]] std::unique_ptr<Runner> keep_catalog(std::unique_ptr<Runner> runner,
                                                   std::map<ModelId, std::filesystem::path> folders, Store& store);

}  // namespace sangam
