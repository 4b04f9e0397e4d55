// Values as text: Python's str and repr, JSON as Python's json.dumps writes it, and strings by character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

[[nodiscard]] std::string to_text(const Value& value);
[[nodiscard]] std::string to_repr(const Value& value);

/// The options of json.dumps.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;
  std::string indent;  ///< One level, where pretty.
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
[[nodiscard]] std::string to_json(const Value& value, const JsonStyle& style);

/// Characters, not bytes.
[[nodiscard]] std::u32string characters(std::string_view text);
[[nodiscard]] std::string from_characters(std::u32string_view characters);
[[nodiscard]] std::int64_t character_count(std::string_view text);

/// What Python's str.isspace takes for a blank.
[[nodiscard]] bool is_blank(char32_t character);

enum class Side { left, right, both };
/// Without the blanks at its ends, or without those of `unwanted`.
[[nodiscard]] std::string_view strip(std::string_view text, Side side);
[[nodiscard]] std::string strip(std::string_view text, Side side, std::u32string_view unwanted);

}  // namespace sangam::jinja
