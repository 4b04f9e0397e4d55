// `sangam profile`: measures models on a running mesh and stores what was measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam {

struct ProfileOptions {
  std::vector<std::string> models;
  std::string url = "http://127.0.0.1:8080";
  std::string key;  ///< Of an operator, where the mesh has keys.
  std::string store = "profiles";  ///< The folder of profiles.
  std::int64_t rounds = 5;
  std::int64_t streams = 16;
  bool json = false;  ///< Print the profiles as JSON instead of tables.
};

/// Each profile is stored as soon as it is measured.
[[nodiscard]] Result<void> profile_models(const ProfileOptions& options);

}  // namespace sangam
