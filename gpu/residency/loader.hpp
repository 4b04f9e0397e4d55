// From a model's folder on disk to a model that is ready to compute from the pool.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gpu/engine/engine.hpp"

namespace sangam {

class Ops;

struct LoadedFolder {
  LoadedModel loaded;
  std::string weights_digest;         ///< Hex; of the checkpoint's tensors.
  std::vector<std::string> warnings;  ///< Of the checkpoint, which serves nevertheless.
};

/// All or nothing. Copies the tensors that the model's configuration calls for; `ops` and the store's pool
/// outlive the result.
[[nodiscard]] Result<LoadedFolder> load_folder(const std::filesystem::path& folder, SegmentStore& segments,
                                               Ops& ops);

}  // namespace sangam
