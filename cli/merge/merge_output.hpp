// What a merge leaves: a folder for each model, a recipe, a report.
#pragma once

#include <filesystem>
#include <string>

#include "cli/merge/merge_pool.hpp"

namespace sangam {

/// folder/NAME for each model, ready to serve: the files of its own folder, and its weights in their new forms.
/// folder/recipe.json last: a folder without it is not complete.
[[nodiscard]] Result<void> write_point(const std::filesystem::path& folder, const MergePoolFile& file, merging::Shelf& shelf,
                                       const merging::MergeOutcome& outcome);

/// For programs: bytes, and for each model what gate and shadow items say.
[[nodiscard]] std::string merge_json(const MergePoolFile& file, const merging::MergeOutcome& outcome);
/// The same for people.
[[nodiscard]] std::string merge_table(const MergePoolFile& file, const merging::MergeOutcome& outcome);

}  // namespace sangam
