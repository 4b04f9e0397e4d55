// What a quoted string in a template means.
#pragma once

#include <string>
#include <string_view>

namespace sangam::jinja {

/// Resolves Python's escapes; unknown ones stay as they are. `line` is for errors.
[[nodiscard]] std::string unescape(std::string_view literal, int line);

}  // namespace sangam::jinja
