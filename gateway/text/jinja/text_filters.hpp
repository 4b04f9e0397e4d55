// Filters on strings and numbers, and the table that joins them with those on sequences.
#pragma once

#include <map>
#include <string>

#include "gateway/text/jinja/filters.hpp"

namespace sangam::jinja {

[[nodiscard]] const std::map<std::string, Filter>& text_filters();
[[nodiscard]] const std::map<std::string, Filter>& sequence_filters();

}  // namespace sangam::jinja
