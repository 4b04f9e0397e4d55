// Binding by position and by name.
#include "gateway/text/jinja/arguments.hpp"

#include <algorithm>

namespace sangam::jinja {

Parameters::Parameters(std::string_view callee, const CallArguments& arguments,
                       std::initializer_list<std::string_view> names)
    : callee_(callee) {
  if (arguments.positional.size() > names.size()) {
    throw TemplateError(callee_ + "() takes at most " + std::to_string(names.size()) + " arguments, got " +
                        std::to_string(arguments.positional.size()));
  }
  const auto* name = names.begin();
  for (const Value& value : arguments.positional) bound_.emplace_back(*name++, &value);
  for (const auto& [key, value] : arguments.keyword) {
    const auto* known = std::find(names.begin(), names.end(), key);
    if (known == names.end())
      throw TemplateError(callee_ + "() got an unexpected keyword argument '" + key + "'");
    if (find(key) != nullptr)
      throw TemplateError(callee_ + "() got multiple values for argument '" + key + "'");
    bound_.emplace_back(*known, &value);
  }
}

const Value* Parameters::find(std::string_view name) const {
  const auto found =
      std::find_if(bound_.begin(), bound_.end(), [name](auto& entry) { return entry.first == name; });
  return found == bound_.end() ? nullptr : found->second;
}

const Value& Parameters::at(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) throw TemplateError(callee_ + "() misses the argument '" + std::string(name) + "'");
  return *value;
}

Value Parameters::value_or(std::string_view name, Value otherwise) const {
  const Value* value = find(name);
  return value == nullptr ? std::move(otherwise) : *value;
}

std::string Parameters::text(std::string_view name) const {
  const std::string* text = require_defined(at(name)).text();
  if (text == nullptr) {
    throw TemplateError(callee_ + "() needs a str as '" + std::string(name) + "', not " +
                        type_name(at(name)));
  }
  return *text;
}

std::optional<std::string> Parameters::text_or_none(std::string_view name) const {
  const Value* value = find(name);
  return value == nullptr || value->is<None>() ? std::nullopt : std::optional(text(name));
}

std::int64_t Parameters::integer_or(std::string_view name, std::int64_t otherwise) const {
  const Value* value = find(name);
  if (value == nullptr || value->is<None>()) return otherwise;
  if (!require_defined(*value).is_integer()) {
    throw TemplateError(callee_ + "() needs an int as '" + std::string(name) + "', not " + type_name(*value));
  }
  return value->integer();
}

bool Parameters::truth_or(std::string_view name, bool otherwise) const {
  const Value* value = find(name);
  return value == nullptr ? otherwise : is_true(*value);
}

}  // namespace sangam::jinja
