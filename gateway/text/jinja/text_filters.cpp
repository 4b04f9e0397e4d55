// Filters on strings and numbers.
#include "gateway/text/jinja/text_filters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "gateway/text/jinja/arguments.hpp"
#include "gateway/text/jinja/operators.hpp"
#include "gateway/text/jinja/python_text.hpp"
#include "gateway/text/jinja/text_methods.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::jinja {
namespace {

Value upper(const Value& subject, const CallArguments&) {
  return text::to_upper(to_text(subject));
}
Value lower(const Value& subject, const CallArguments&) {
  return text::to_lower(to_text(subject));
}
Value capitalize(const Value& subject, const CallArguments&) {
  return capitalized(to_text(subject));
}
Value string(const Value& subject, const CallArguments&) {
  return to_text(subject);
}

Value trim(const Value& subject, const CallArguments& arguments) {
  const auto unwanted = Parameters("trim", arguments, {"chars"}).text_or_none("chars");
  const std::string text = to_text(subject);
  return unwanted ? Value(strip(text, Side::both, characters(*unwanted))) : Value(strip(text, Side::both));
}

/// Words are what blanks, hyphens and opening brackets separate.
Value title(const Value& subject, const CallArguments&) {
  constexpr std::u32string_view kSeparators = U"-({[<";
  const std::u32string all = characters(to_text(subject));
  std::string out;
  for (std::size_t begin = 0; begin < all.size();) {
    const auto separates = [&](char32_t c) {
      return is_blank(c) || kSeparators.find(c) != std::u32string_view::npos;
    };
    std::size_t end = begin + 1;
    while (end < all.size() && separates(all[end]) == separates(all[begin])) ++end;
    out += capitalized(from_characters({&all[begin], end - begin}));
    begin = end;
  }
  return out;
}

Value replace(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"});
  return replace_text(to_text(subject), to_text(parameters.at("old")), to_text(parameters.at("new")),
                      parameters.integer_or("count", -1));
}

std::string indentation(const Parameters& parameters, const char* name, std::int64_t otherwise) {
  const Value width = parameters.value_or(name, Value(otherwise));
  if (width.text() != nullptr) return *width.text();
  return std::string(
      static_cast<std::size_t>(std::max<std::int64_t>(0, parameters.integer_or(name, otherwise))), ' ');
}

Value indent(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("indent", arguments, {"width", "first", "blank"});
  const std::string margin = indentation(parameters, "width", 4);
  const bool blank = parameters.truth_or("blank", false);
  std::string out = parameters.truth_or("first", false) ? margin : "";
  bool is_first = true;
  // The added line end makes a last empty line count.
  for (const std::string& line : split_lines(to_text(subject) + "\n", false)) {
    if (!is_first) out += "\n" + (line.empty() && !blank ? "" : margin);
    out += line;
    is_first = false;
  }
  return out;
}

Value tojson(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = parameters.truth_or("ensure_ascii", false);
  style.sort_keys = parameters.truth_or("sort_keys", false);
  style.pretty = !parameters.value_or("indent", Value()).is<None>();
  if (style.pretty) style.indent = indentation(parameters, "indent", 0), style.item_separator = ",";
  const Value separators = parameters.value_or("separators", Value());
  if (separators.items() != nullptr && separators.items()->size() == 2) {
    style.item_separator = to_text(separators.items()->front());
    style.key_separator = to_text(separators.items()->back());
  } else if (!separators.is<None>()) {
    throw TemplateError("tojson() needs two separators");
  }
  return to_json(subject, style);
}

/// Python's int() and float() of a string: blanks around it and underscores between digits are allowed.
std::string plain_number(const std::string& text) {
  std::string digits(strip(text, Side::both));
  std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  return digits;
}

template <class Number, class... Options>
std::optional<Number> parse_number(const std::string& text, Options... options) {
  const std::string digits = plain_number(text);
  Number number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, options...);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  return whole ? std::optional(number) : std::nullopt;
}

std::int64_t truncated(double number) {
  constexpr double kLimit = 9.2e18;
  if (!(std::abs(number) < kLimit)) throw TemplateError("the number does not fit into 64 bits");
  return static_cast<std::int64_t>(number);
}

/// Digits in `base`; the bases of programmers may be said in front of them.
std::optional<std::int64_t> parse_integer(std::string text, int base) {
  const std::string_view prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  text = text::to_lower(plain_number(text));
  if (!prefix.empty() && text.starts_with(prefix)) text.erase(0, prefix.size());
  return parse_number<std::int64_t>(text, base);
}

Value to_int(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("int", arguments, {"default", "base"});
  const Value otherwise = parameters.value_or("default", Value(std::int64_t{0}));
  if (subject.is_integer()) return subject.integer();
  std::optional<std::int64_t> number;
  if (subject.is<double>()) number = truncated(subject.real());
  if (const std::string* text = subject.text()) {
    number = parse_integer(
        *text, static_cast<int>(std::clamp<std::int64_t>(parameters.integer_or("base", 10), 2, 36)));
    const auto real = number ? std::nullopt : parse_number<double>(*text);
    if (real) number = truncated(*real);
  }
  return number ? Value(*number) : otherwise;
}

Value to_float(const Value& subject, const CallArguments& arguments) {
  const Value otherwise = Parameters("float", arguments, {"default"}).value_or("default", Value(0.0));
  if (subject.is_number()) return subject.real();
  const auto number = subject.text() != nullptr ? parse_number<double>(*subject.text()) : std::nullopt;
  return number ? Value(*number) : otherwise;
}

Value absolute(const Value& subject, const CallArguments&) {
  if (!require_defined(subject).is_number()) {
    throw TemplateError("bad operand type for abs(): '" + type_name(subject) + "'");
  }
  return subject.is<double>()                    ? Value(std::abs(subject.real()))
         : less(subject, Value(std::int64_t{0})) ? negate(subject)
                                                 : Value(subject.integer());
}

/// To `digits` behind the point, ties of the decimal expansion to even, as Python's round().
double rounded(double number, std::int64_t digits) {
  if (!std::isfinite(number)) return number;
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(number / scale) * scale;
  }
  std::array<char, 400> text{};
  std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(std::min<std::int64_t>(digits, 60)),
                number);
  return std::strtod(text.data(), nullptr);
}

Value round_number(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("round", arguments, {"precision", "method"});
  const std::int64_t precision = parameters.integer_or("precision", 0);
  const std::string method = to_text(parameters.value_or("method", "common"));
  if (!require_defined(subject).is_number())
    throw TemplateError("round needs a number, not " + type_name(subject));
  if (method == "common")
    return subject.is_integer() && precision >= 0 ? Value(subject.integer())
                                                  : rounded(subject.real(), precision);
  if (method != "ceil" && method != "floor") throw TemplateError("method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  return (method == "ceil" ? std::ceil(subject.real() * scale) : std::floor(subject.real() * scale)) / scale;
}

Value default_to(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("default", arguments, {"default_value", "boolean"});
  const bool absent = subject.is<Undefined>() || (parameters.truth_or("boolean", false) && !is_true(subject));
  return absent ? parameters.value_or("default_value", "") : subject;
}

Value safe(const Value& subject, const CallArguments&) {
  return subject;
}

Value wordcount(const Value& subject, const CallArguments&) {
  std::int64_t count = 0;
  bool in_word = false;
  for (const char32_t c : characters(to_text(subject))) {
    count += !in_word && text::is_word(c) ? 1 : 0;
    in_word = text::is_word(c);
  }
  return count;
}

}  // namespace

const std::map<std::string, Filter>& text_filters() {
  static const std::map<std::string, Filter> kFilters{
      {"abs", absolute},        {"capitalize", capitalize}, {"d", default_to}, {"default", default_to},
      {"float", to_float},      {"indent", indent},         {"int", to_int},   {"lower", lower},
      {"replace", replace},     {"round", round_number},    {"safe", safe},    {"string", string},
      {"title", title},         {"tojson", tojson},         {"trim", trim},    {"upper", upper},
      {"wordcount", wordcount},
  };
  return kFilters;
}

}  // namespace sangam::jinja
