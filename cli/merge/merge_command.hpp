// `sangam merge`: from a pool of models to an operating point within each model's accuracy budget.
#pragma once

#include <string>

#include "messages/vocabulary/result.hpp"

namespace sangam {

struct MergeCommandOptions {
  std::string pool;        ///< A TOML file.
  std::string output;      ///< Folder for the merged models; empty: none are written.
  std::string state;       ///< Folder of the trajectory; empty: the pool's file with .state behind it.
  std::string html;        ///< A page to look at; empty: none.
  bool resume = false;     ///< Go on with the trials that the state folder holds.
  bool json = false;
  int threads = 0;         ///< 0: as many as there are processors.
};

/// Prints what was saved and what each model's items say of it.
[[nodiscard]] Result<void> merge_pool(const MergeCommandOptions& options);

}  // namespace sangam
