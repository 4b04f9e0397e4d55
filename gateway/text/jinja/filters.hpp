// The filters and tests that templates may name.
#pragma once

#include <string>

#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

using Filter = Value (*)(const Value& subject, const CallArguments& arguments);
using Test = bool (*)(const Value& subject, const CallArguments& arguments);

/// Null where there is no such filter or test.
[[nodiscard]] Filter find_filter(const std::string& name);
[[nodiscard]] Test find_test(const std::string& name);

}  // namespace sangam::jinja
