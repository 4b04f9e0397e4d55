// The [[node]] tables: which process is where, what it hosts, and which key is its own.
#pragma once

#include "cli/config_reader.hpp"
#include "cli/mesh_config.hpp"

namespace sangam {

/// Reads them into `config`, whose workers and keys have been read; what is wrong is kept by the tables.
void read_node_tables(ConfigTable& root, MeshConfig& config);

}  // namespace sangam
