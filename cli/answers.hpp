// What a mesh that says no, or nothing, means to whoever asked on the command line.
#pragma once

#include "cli/http_client.hpp"

namespace sangam {

/// An answer whose status is not 200, with the mesh's own words.
[[nodiscard]] Error refused(const HttpAnswer& answer);
/// No answer at all.
[[nodiscard]] Error no_mesh(const Error& error);

}  // namespace sangam
