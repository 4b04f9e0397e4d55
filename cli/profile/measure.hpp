// Measures what a model costs on the workers of a running mesh: sends a small grid of loads and reads from the
// workers' own counts what they did for it and in how long, so that nothing of HTTP is in the times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/http_client.hpp"
#include "cli/profile/profile_file.hpp"

namespace sangam {

struct MeasureOptions {
  std::string key;  ///< An operator's, where the mesh has keys.
  std::int64_t rounds = 5;  ///< Through the grid.
  std::int64_t streams = 16;
  std::uint64_t seed = 1;  ///< Of prompts and of resampling.
  std::function<void(double share)> progress = {};
};

/// Wakes the model if it sleeps. Errors: the mesh refuses, other load is on it, or somebody breaks it off.
[[nodiscard]] Result<Profile> measure(const HttpBase& base, const ModelId& model, const MeasureOptions& options);

}  // namespace sangam
