// What a running mesh offers.
#pragma once

#include <string>
#include <vector>

#include "cli/http_client.hpp"
#include "cli/replay_plan.hpp"

namespace sangam {

/// What GET /v1/models lists.
[[nodiscard]] Result<std::vector<MeshModel>> offered_models(const HttpBase& base, const std::string& key);

}  // namespace sangam
