// Python's operators, subscripts and iteration on template values.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

enum class Arithmetic { add, subtract, multiply, divide, floor_divide, modulo, power };

[[nodiscard]] Value calculate(Arithmetic operation, const Value& left, const Value& right);
[[nodiscard]] Value negate(const Value& value);

/// `item in container`.
[[nodiscard]] bool contains(const Value& container, const Value& item);
/// What a for loop goes through: items, characters, keys; nothing of an undefined value.
[[nodiscard]] List iterate(const Value& value);
[[nodiscard]] std::int64_t length(const Value& value);

/// `value.name`: a method, or else the item of that name. Undefined where there is neither.
[[nodiscard]] Value attribute(const Value& value, const std::string& name);
/// `value[key]`: the item, or else the attribute. Undefined where there is neither.
[[nodiscard]] Value subscript(const Value& value, const Value& key);

struct SliceBounds {
  std::optional<std::int64_t> start;
  std::optional<std::int64_t> stop;
  std::int64_t step = 1;
};
[[nodiscard]] Value slice(const Value& value, const SliceBounds& bounds);

[[nodiscard]] Value call(const Value& callee, const CallArguments& arguments);

}  // namespace sangam::jinja
