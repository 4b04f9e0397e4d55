// What may stand behind `is`.
#include <map>

#include "gateway/text/jinja/arguments.hpp"
#include "gateway/text/jinja/filters.hpp"
#include "gateway/text/jinja/operators.hpp"
#include "gateway/text/jinja/python_text.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::jinja {
namespace {

const Value& other(const CallArguments& arguments) {
  if (arguments.positional.size() != 1) throw TemplateError("the test needs one argument");
  return arguments.positional.front();
}

std::int64_t integer(const Value& value) {
  if (!require_defined(value).is_integer())
    throw TemplateError("the test needs an int, not " + type_name(value));
  return value.integer();
}

bool divides(std::int64_t by, const Value& value) {
  if (by == 0) throw TemplateError("division by zero");
  return integer(value) % by == 0;
}

bool is_lower_text(const Value& value) {
  const std::string text = to_text(value);
  return text::to_lower(text) == text && text::to_upper(text) != text;
}

bool is_upper_text(const Value& value) {
  const std::string text = to_text(value);
  return text::to_upper(text) == text && text::to_lower(text) != text;
}

bool can_iterate(const Value& value) {
  return value.is<Undefined>() || value.text() != nullptr || value.items() != nullptr ||
         value.dict() != nullptr || value.loop() != nullptr;
}

using Arguments = const CallArguments&;

const std::map<std::string, Test>& tests() {
  static const std::map<std::string, Test> kTests{
      {"boolean", [](const Value& v, Arguments) { return v.is<bool>(); }},
      {"callable", [](const Value& v, Arguments) { return v.callable() != nullptr; }},
      {"defined", [](const Value& v, Arguments) { return !v.is<Undefined>(); }},
      {"divisibleby", [](const Value& v, Arguments a) { return divides(integer(other(a)), v); }},
      {"eq", [](const Value& v, Arguments a) { return equal(v, other(a)); }},
      {"even", [](const Value& v, Arguments) { return divides(2, v); }},
      {"false", [](const Value& v, Arguments) { return v.is<bool>() && !is_true(v); }},
      {"filter",
       [](const Value& v, Arguments) { return v.text() != nullptr && find_filter(*v.text()) != nullptr; }},
      {"float", [](const Value& v, Arguments) { return v.is<double>(); }},
      {"ge", [](const Value& v, Arguments a) { return !less(v, other(a)); }},
      {"gt", [](const Value& v, Arguments a) { return less(other(a), v); }},
      {"in", [](const Value& v, Arguments a) { return contains(other(a), v); }},
      {"integer", [](const Value& v, Arguments) { return v.is<std::int64_t>(); }},
      {"iterable", [](const Value& v, Arguments) { return can_iterate(v); }},
      {"le", [](const Value& v, Arguments a) { return !less(other(a), v); }},
      {"lower", [](const Value& v, Arguments) { return is_lower_text(v); }},
      {"lt", [](const Value& v, Arguments a) { return less(v, other(a)); }},
      {"mapping", [](const Value& v, Arguments) { return v.dict() != nullptr; }},
      {"ne", [](const Value& v, Arguments a) { return !equal(v, other(a)); }},
      {"none", [](const Value& v, Arguments) { return v.is<None>(); }},
      {"number", [](const Value& v, Arguments) { return v.is_number(); }},
      {"odd", [](const Value& v, Arguments) { return !divides(2, v); }},
      {"sameas",
       [](const Value& v, Arguments a) {
         return v.kind().index() == other(a).kind().index() && equal(v, other(a));
       }},
      {"sequence", [](const Value& v, Arguments) { return can_iterate(v) && v.loop() == nullptr; }},
      {"string", [](const Value& v, Arguments) { return v.text() != nullptr; }},
      {"test",
       [](const Value& v, Arguments) { return v.text() != nullptr && find_test(*v.text()) != nullptr; }},
      {"true", [](const Value& v, Arguments) { return v.is<bool>() && is_true(v); }},
      {"undefined", [](const Value& v, Arguments) { return v.is<Undefined>(); }},
      {"upper", [](const Value& v, Arguments) { return is_upper_text(v); }},
  };
  return kTests;
}

/// Other spellings of the same tests.
const std::map<std::string, std::string>& aliases() {
  static const std::map<std::string, std::string> kAliases{
      {"==", "eq"}, {"equalto", "eq"}, {"!=", "ne"},       {">", "gt"},  {"greaterthan", "gt"},
      {">=", "ge"}, {"<", "lt"},       {"lessthan", "lt"}, {"<=", "le"},
  };
  return kAliases;
}

}  // namespace

Test find_test(const std::string& name) {
  const auto alias = aliases().find(name);
  const auto found = tests().find(alias == aliases().end() ? name : alias->second);
  return found == tests().end() ? nullptr : found->second;
}

}  // namespace sangam::jinja
