// A merge as a page to look at: what was tried, and in which form each slot is stored.
#pragma once

#include <string>

#include "cli/merge/merge_pool.hpp"

namespace sangam {

/// One HTML file with its drawings in it; nothing is loaded from elsewhere.
[[nodiscard]] std::string merge_page(const MergePoolFile& file, const merging::Pool& pool, const merging::MergeOutcome& outcome);

}  // namespace sangam
