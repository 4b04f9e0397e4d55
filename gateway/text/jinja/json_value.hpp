// JSON text as a value that templates see.
#pragma once

#include <string_view>

#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

/// Throws TemplateError, which names `name`, where the text is not JSON or nests too deep.
[[nodiscard]] Value value_of_json(std::string_view text, std::string_view name);

}  // namespace sangam::jinja
