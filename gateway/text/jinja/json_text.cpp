// JSON as Python's json.dumps writes it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "gateway/text/jinja/python_text.hpp"

namespace sangam::jinja {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value) {
    if (const std::string* text = value.text()) return write_text(*text);
    if (const List* items = value.items()) return write_list(*items);
    if (const Dict* dict = value.dict()) return write_dict(*dict);
    out_ += scalar(value);
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  static std::string scalar(const Value& value) {
    if (value.is<None>()) return "null";
    if (value.is<bool>()) return value.integer() != 0 ? "true" : "false";
    if (value.is<double>() && std::isnan(value.real())) return "NaN";
    if (value.is<double>() && std::isinf(value.real())) return value.real() < 0 ? "-Infinity" : "Infinity";
    if (value.is_number()) return to_repr(value);
    throw TemplateError("Object of type " + type_name(value) + " is not JSON serializable");
  }

  static std::string key_text(const Value& key) {
    if (const std::string* text = key.text()) return *text;
    if (key.is<None>() || key.is_number()) return scalar(key);
    throw TemplateError("keys must be str, int, float, bool or None, not " + type_name(key));
  }

  void write_text(std::string_view text) {
    out_ += '"';
    if (style_.ensure_ascii) {
      for (const char32_t c : characters(text)) write_ascii(c);
    } else {
      for (const char c : text) write_byte(c);
    }
    out_ += '"';
  }

  void write_byte(char c) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\b':
        out_ += "\\b";
        return;
      case '\f':
        out_ += "\\f";
        return;
      default:
        break;
    }
    if (static_cast<unsigned char>(c) < 0x20) return write_unit(static_cast<char32_t>(c));
    out_ += c;
  }

  void write_ascii(char32_t c) {
    if (c < 0x7F) return write_byte(static_cast<char>(c));
    if (c < 0x10000) return write_unit(c);
    write_unit(0xD800 + ((c - 0x10000) >> 10));
    write_unit(0xDC00 + ((c - 0x10000) & 0x3FF));
  }

  void write_unit(char32_t unit) {
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned>(unit) & 0xFFFFu);
    out_ += text.data();
  }

  void break_line(std::size_t depth) {
    if (!style_.pretty) return;
    out_ += '\n';
    for (std::size_t i = 0; i < depth; ++i) out_ += style_.indent;
  }

  void write_list(const List& items) {
    if (items.empty()) return void(out_ += "[]");
    out_ += '[';
    ++depth_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line(depth_);
      write(items[i]);
    }
    break_line(--depth_);
    out_ += ']';
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) return void(out_ += "{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [](auto* a, auto* b) { return less(a->first, b->first); });
    }
    out_ += '{';
    ++depth_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      break_line(depth_);
      write_text(key_text(entries[i]->first));
      out_ += style_.key_separator;
      write(entries[i]->second);
    }
    break_line(--depth_);
    out_ += '}';
  }

  const JsonStyle& style_;
  std::size_t depth_ = 0;
  std::string out_;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value);
  return writer.take();
}

}  // namespace sangam::jinja
