// Secret keys of nodes, each in a file that only its owner may read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/mesh_config.hpp"
#include "messages/mesh/mesh.hpp"

namespace sangam {

/// The keys of this node; nothing where the mesh has none. `invalid_input`: the file is not there, may be read by
/// others, holds no key, or not the one that belongs to the node's public key.
[[nodiscard]] Result<std::optional<MeshKeys>> read_keys(const MeshConfig& config, const NodeConfig& node);

/// Makes a key for each name, as FOLDER/NAME.key, and never overwrites one. Prints each public key as a line of its
/// [[node]] table.
[[nodiscard]] Result<void> make_keys(const std::filesystem::path& folder, const std::vector<std::string>& names);

}  // namespace sangam
