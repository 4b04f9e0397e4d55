// The tables of the planners: [oracle], [placement] and [autoscaler]. Each is hosted where its table is there.
#pragma once

#include <filesystem>

#include "cli/config_reader.hpp"
#include "cli/mesh_config.hpp"

namespace sangam {

/// After the workers have been read. What is wrong is kept by `root`; paths are relative to `base`.
void read_planners(ConfigTable& root, MeshConfig& config, const std::filesystem::path& base);

}  // namespace sangam
