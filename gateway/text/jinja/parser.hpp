// From tokens to the tree.
#pragma once

#include <string_view>

#include "gateway/text/jinja/ast.hpp"

namespace sangam::jinja {

/// Throws TemplateSyntaxError, also for filters, tests and tags that do not exist.
[[nodiscard]] Block parse_template(std::string_view source);

}  // namespace sangam::jinja
