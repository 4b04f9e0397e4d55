// The methods of strings, lists and dictionaries that a sandboxed template may call.
#pragma once

#include <string>

#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

using Method = Value (*)(const Value& self, const CallArguments& arguments);

/// Null where the type has no such method. Refuses methods that would change the value.
[[nodiscard]] Method find_method(const Value& self, const std::string& name);

}  // namespace sangam::jinja
