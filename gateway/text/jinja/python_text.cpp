// str, repr and characters.
#include "gateway/text/jinja/python_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "gateway/text/unicode.hpp"

namespace sangam::jinja {
namespace {

std::string escape(const char* format, char32_t c) {
  std::array<char, 16> out{};
  std::snprintf(out.data(), out.size(), format, static_cast<unsigned>(c));
  return out.data();
}

std::string repr_of_character(char32_t c, char quote) {
  if (c == '\\') return "\\\\";
  if (c == static_cast<char32_t>(quote)) return std::string("\\") + quote;
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (text::is_printable(c)) {
    std::string out;
    text::append_utf8(out, c);
    return out;
  }
  return c < 0x100 ? escape("\\x%02x", c) : c < 0x10000 ? escape("\\u%04x", c) : escape("\\U%08x", c);
}

std::string repr_of_text(std::string_view content) {
  const bool has_single = content.find('\'') != std::string_view::npos;
  const char quote = has_single && content.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char32_t c : characters(content)) out += repr_of_character(c, quote);
  return out += quote;
}

/// The shortest digits that give the number again, in Python's choice of notation.
std::string repr_of_real(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer{};
  const auto write = [&](std::chars_format format) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format).ptr;
    return std::string(buffer.data(), end);
  };
  const std::string scientific = write(std::chars_format::scientific);
  const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return scientific;
  std::string fixed = write(std::chars_format::fixed);
  return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

std::string joined(const List& items) {
  std::string out;
  for (const Value& item : items) out += (out.empty() ? "" : ", ") + to_repr(item);
  return out;
}

std::string repr_of_dict(const Dict& dict) {
  std::string out;
  for (const auto& [key, value] : dict.entries) {
    out += (out.empty() ? "" : ", ") + to_repr(key) + ": " + to_repr(value);
  }
  return "{" + out + "}";
}

std::string repr_of_items(const Value& value) {
  const List& items = *value.items();
  if (!value.is<Tuple>()) return "[" + joined(items) + "]";
  return "(" + joined(items) + (items.size() == 1 ? ",)" : ")");
}

}  // namespace

std::string to_repr(const Value& value) {
  if (value.is<Undefined>()) return "Undefined";
  if (value.is<None>()) return "None";
  if (value.is<bool>()) return value.integer() != 0 ? "True" : "False";
  if (value.is<std::int64_t>()) return std::to_string(value.integer());
  if (value.is<double>()) return repr_of_real(value.real());
  if (const std::string* content = value.text()) return repr_of_text(*content);
  if (value.items() != nullptr) return repr_of_items(value);
  if (const Dict* dict = value.dict()) return repr_of_dict(*dict);
  return "<" + type_name(value) + ">";
}

std::string to_text(const Value& value) {
  if (value.is<Undefined>()) return {};
  if (const std::string* content = value.text()) return *content;
  return to_repr(value);
}

std::u32string characters(std::string_view content) {
  std::u32string out;
  out.reserve(content.size());
  for (std::size_t at = 0; at < content.size();) {
    const text::Utf8Step step = text::utf8_step(content, at);
    out += step.kind == text::Utf8Step::Kind::character ? step.value : U'\uFFFD';
    at += step.size;
  }
  return out;
}

std::string from_characters(std::u32string_view content) {
  std::string out;
  out.reserve(content.size());
  for (const char32_t c : content) text::append_utf8(out, c);
  return out;
}

std::int64_t character_count(std::string_view content) {
  return std::count_if(content.begin(), content.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

bool is_blank(char32_t c) {
  return text::is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

std::string_view strip(std::string_view content, Side side) {
  std::size_t begin = 0;
  std::size_t end = content.size();
  while (side != Side::right && begin < end) {
    const text::Utf8Step step = text::utf8_step(content, begin);
    if (!is_blank(step.value)) break;
    begin += step.size;
  }
  while (side != Side::left && end > begin) {
    std::size_t last = end - 1;
    while (last > begin && (content[last] & 0xC0) == 0x80) --last;
    if (!is_blank(text::utf8_step(content, last).value)) break;
    end = last;
  }
  return content.substr(begin, end - begin);
}

std::string strip(std::string_view content, Side side, std::u32string_view unwanted) {
  const std::u32string all = characters(content);
  std::u32string_view rest = all;
  const auto is_unwanted = [unwanted](char32_t c) { return unwanted.find(c) != std::u32string_view::npos; };
  while (side != Side::right && !rest.empty() && is_unwanted(rest.front())) rest.remove_prefix(1);
  while (side != Side::left && !rest.empty() && is_unwanted(rest.back())) rest.remove_suffix(1);
  return from_characters(rest);
}

}  // namespace sangam::jinja
