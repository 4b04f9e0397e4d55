// The arguments of a call, matched with the names that the callee gives them.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

/// Refuses arguments that the callee does not know.
class Parameters {
 public:
  Parameters(std::string_view callee, const CallArguments& arguments,
             std::initializer_list<std::string_view> names);

  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Refuses a call without it.
  [[nodiscard]] const Value& at(std::string_view name) const;
  [[nodiscard]] Value value_or(std::string_view name, Value otherwise) const;

  [[nodiscard]] std::string text(std::string_view name) const;
  /// Nothing where it is absent or None.
  [[nodiscard]] std::optional<std::string> text_or_none(std::string_view name) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] bool truth_or(std::string_view name, bool otherwise) const;

 private:
  [[nodiscard]] const Value* find(std::string_view name) const;

  std::string callee_;
  std::vector<std::pair<std::string_view, const Value*>> bound_;
};

}  // namespace sangam::jinja
