// Reports that are written to files at the end of a long run.
#pragma once

#include <initializer_list>
#include <string>

#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Before the run, so that its report is not lost after it; an empty path is no file.
[[nodiscard]] Result<void> check_writable(std::initializer_list<std::string> paths);

/// Beside the path, and renamed when it is whole: others may look meanwhile.
[[nodiscard]] Result<void> write_whole(const std::string& path, const std::string& content);

/// Nothing, where the path is empty.
[[nodiscard]] Result<void> write_report(const std::string& path, const std::string& content);

}  // namespace sangam
