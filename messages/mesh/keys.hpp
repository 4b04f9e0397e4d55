// Keys of nodes: making them, and telling what belongs to a secret one.
#pragma once

#include <string>

#include "messages/mesh/mesh.hpp"

namespace sangam {

/// A fresh pair, from the system's random numbers.
[[nodiscard]] MeshKeys new_mesh_keys();
/// The pair that a secret key makes. `invalid_input` where it is no key; the error does not repeat it.
[[nodiscard]] Result<MeshKeys> mesh_keys_of(const std::string& secret_key);
/// Whether this could be a key: 40 characters of Z85.
[[nodiscard]] bool is_mesh_key(const std::string& text);

}  // namespace sangam
