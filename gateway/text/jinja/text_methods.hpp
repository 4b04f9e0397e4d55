// The methods of Python's str.
#pragma once

#include <map>
#include <string>

#include "gateway/text/jinja/methods.hpp"

namespace sangam::jinja {

[[nodiscard]] const std::map<std::string, Method>& text_methods();

// Used by filters as well.
[[nodiscard]] std::string replace_text(std::string_view text, std::string_view old, std::string_view with,
                                       std::int64_t count);
[[nodiscard]] std::vector<std::string> split_lines(std::string_view text, bool keep_ends);
/// First character in upper, the rest in lower case.
[[nodiscard]] std::string capitalized(std::string_view text);

}  // namespace sangam::jinja
