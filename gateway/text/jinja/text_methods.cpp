// str, method by method.
#include "gateway/text/jinja/text_methods.hpp"

#include <algorithm>

#include "gateway/text/jinja/arguments.hpp"
#include "gateway/text/jinja/operators.hpp"
#include "gateway/text/jinja/python_text.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::jinja {
namespace {

const std::string& of(const Value& self) {
  return *self.text();
}

template <Side side>
Value strip_side(const Value& self, const CallArguments& arguments) {
  const auto unwanted = Parameters("strip", arguments, {"chars"}).text_or_none("chars");
  return unwanted ? Value(strip(of(self), side, characters(*unwanted))) : Value(strip(of(self), side));
}

Value upper(const Value& self, const CallArguments& arguments) {
  const Parameters none("upper", arguments, {});
  return text::to_upper(of(self));
}

Value lower(const Value& self, const CallArguments& arguments) {
  const Parameters none("lower", arguments, {});
  return text::to_lower(of(self));
}

Value capitalize(const Value& self, const CallArguments& arguments) {
  const Parameters none("capitalize", arguments, {});
  return capitalized(of(self));
}

/// Each run of letters on its own.
Value title(const Value& self, const CallArguments& arguments) {
  const Parameters none("title", arguments, {});
  std::string out;
  std::string run;
  const auto flush = [&] { out += capitalized(run), run.clear(); };
  for (const char32_t c : characters(of(self))) {
    std::string letter;
    text::append_utf8(letter, c);
    const bool has_case = text::to_lower(letter) != letter || text::to_upper(letter) != letter;
    if (!has_case) flush();
    has_case ? run += letter : out += letter;
  }
  flush();
  return out;
}

/// `affix` is a string, or a tuple of them.
template <class Matches>
bool has_affix(const CallArguments& arguments, std::string_view method, Matches matches) {
  const Parameters parameters(method, arguments, {"affix"});
  const Value& affix = parameters.at("affix");
  if (!affix.is<Tuple>()) return matches(parameters.text("affix"));
  return std::any_of(affix.items()->begin(), affix.items()->end(),
                     [&](const Value& item) { return item.text() != nullptr && matches(*item.text()); });
}

Value startswith(const Value& self, const CallArguments& arguments) {
  return has_affix(arguments, "startswith",
                   [&](const std::string& affix) { return of(self).starts_with(affix); });
}

Value endswith(const Value& self, const CallArguments& arguments) {
  return has_affix(arguments, "endswith",
                   [&](const std::string& affix) { return of(self).ends_with(affix); });
}

Value removeprefix(const Value& self, const CallArguments& arguments) {
  const std::string affix = Parameters("removeprefix", arguments, {"prefix"}).text("prefix");
  return of(self).starts_with(affix) ? of(self).substr(affix.size()) : of(self);
}

Value removesuffix(const Value& self, const CallArguments& arguments) {
  const std::string affix = Parameters("removesuffix", arguments, {"suffix"}).text("suffix");
  return of(self).ends_with(affix) ? of(self).substr(0, of(self).size() - affix.size()) : of(self);
}

Value replace(const Value& self, const CallArguments& arguments) {
  const Parameters parameters("replace", arguments, {"old", "new", "count"});
  return replace_text(of(self), parameters.text("old"), parameters.text("new"),
                      parameters.integer_or("count", -1));
}

List split_at_blanks(std::string_view text, std::int64_t limit) {
  List parts;
  for (std::string_view rest = strip(text, Side::left); !rest.empty(); rest = strip(rest, Side::left)) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.emplace_back(strip(rest, Side::right));
      break;
    }
    std::size_t end = 0;
    while (end < rest.size() && !is_blank(text::utf8_step(rest, end).value))
      end += text::utf8_size(rest[end]);
    parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return parts;
}

Value split(const Value& self, const CallArguments& arguments) {
  const Parameters parameters("split", arguments, {"sep", "maxsplit"});
  const auto separator = parameters.text_or_none("sep");
  std::int64_t limit = parameters.integer_or("maxsplit", -1);
  if (!separator) return split_at_blanks(of(self), limit);
  if (separator->empty()) throw TemplateError("empty separator");
  List parts;
  std::size_t begin = 0;
  for (auto at = of(self).find(*separator); at != std::string::npos && limit != 0; --limit) {
    parts.emplace_back(of(self).substr(begin, at - begin));
    begin = at + separator->size();
    at = of(self).find(*separator, begin);
  }
  parts.emplace_back(of(self).substr(begin));
  return parts;
}

Value rsplit(const Value& self, const CallArguments& arguments) {
  const Parameters parameters("rsplit", arguments, {"sep", "maxsplit"});
  const std::string separator = parameters.text("sep");
  if (separator.empty()) throw TemplateError("empty separator");
  std::int64_t limit = parameters.integer_or("maxsplit", -1);
  List reversed;
  std::string rest = of(self);
  for (auto at = rest.rfind(separator); at != std::string::npos && limit != 0; --limit) {
    reversed.emplace_back(rest.substr(at + separator.size()));
    rest.resize(at);
    at = rest.rfind(separator);
  }
  reversed.emplace_back(rest);
  return List(reversed.rbegin(), reversed.rend());
}

Value partition(const Value& self, const CallArguments& arguments) {
  const std::string separator = Parameters("partition", arguments, {"sep"}).text("sep");
  if (separator.empty()) throw TemplateError("empty separator");
  const auto at = of(self).find(separator);
  if (at == std::string::npos) return Value::tuple({self, "", ""});
  return Value::tuple({of(self).substr(0, at), separator, of(self).substr(at + separator.size())});
}

Value splitlines(const Value& self, const CallArguments& arguments) {
  const bool keep = Parameters("splitlines", arguments, {"keepends"}).truth_or("keepends", false);
  List lines;
  for (std::string& line : split_lines(of(self), keep)) lines.emplace_back(std::move(line));
  return lines;
}

Value join(const Value& self, const CallArguments& arguments) {
  const Parameters parameters("join", arguments, {"iterable"});
  std::string out;
  bool first = true;
  for (const Value& item : iterate(parameters.at("iterable"))) {
    if (item.text() == nullptr) throw TemplateError("join() needs str items, found " + type_name(item));
    out += (first ? "" : of(self)) + *item.text();
    first = false;
  }
  return out;
}

Value found_at(const std::string& text, std::size_t at) {
  return at == std::string::npos ? std::int64_t{-1} : character_count(std::string_view(text).substr(0, at));
}

Value find(const Value& self, const CallArguments& arguments) {
  return found_at(of(self), of(self).find(Parameters("find", arguments, {"sub"}).text("sub")));
}

Value rfind(const Value& self, const CallArguments& arguments) {
  return found_at(of(self), of(self).rfind(Parameters("rfind", arguments, {"sub"}).text("sub")));
}

Value index(const Value& self, const CallArguments& arguments) {
  const Value at = find(self, arguments);
  if (at.integer() < 0) throw TemplateError("substring not found");
  return at;
}

Value count(const Value& self, const CallArguments& arguments) {
  const std::string wanted = Parameters("count", arguments, {"sub"}).text("sub");
  if (wanted.empty()) return character_count(of(self)) + 1;
  std::int64_t count = 0;
  for (auto at = of(self).find(wanted); at != std::string::npos;
       at = of(self).find(wanted, at + wanted.size()))
    ++count;
  return count;
}

template <class Predicate>
bool all_characters(const Value& self, Predicate predicate) {
  const std::u32string all = characters(of(self));
  return !all.empty() && std::all_of(all.begin(), all.end(), predicate);
}

Value isspace(const Value& self, const CallArguments&) {
  return all_characters(self, is_blank);
}
Value isdigit(const Value& self, const CallArguments&) {
  return all_characters(self, text::is_digit);
}
Value isalpha(const Value& self, const CallArguments&) {
  return all_characters(self, text::is_letter);
}
Value isalnum(const Value& self, const CallArguments&) {
  return all_characters(self, [](char32_t c) { return text::is_letter(c) || text::is_numeric(c); });
}

Value isupper(const Value& self, const CallArguments&) {
  return text::to_upper(of(self)) == of(self) && text::to_lower(of(self)) != of(self);
}

Value islower(const Value& self, const CallArguments&) {
  return text::to_lower(of(self)) == of(self) && text::to_upper(of(self)) != of(self);
}

}  // namespace

std::string replace_text(std::string_view text, std::string_view old, std::string_view with,
                         std::int64_t count) {
  std::string out;
  if (old.empty()) {
    // Before each character and at the end, as Python does.
    for (std::size_t at = 0; at <= text.size(); ++at) {
      const bool at_character = at == text.size() || (text[at] & 0xC0) != 0x80;
      if (at_character && count != 0) out += with, --count;
      if (at < text.size()) out += text[at];
    }
    return out;
  }
  std::size_t begin = 0;
  for (auto at = text.find(old); at != std::string_view::npos && count != 0; --count) {
    out.append(text.substr(begin, at - begin)).append(with);
    begin = at + old.size();
    at = text.find(old, begin);
  }
  return out.append(text.substr(begin));
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  constexpr std::u32string_view kBreaks = U"\n\r\v\f\x1C\x1D\x1E\x85\u2028\u2029";
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const text::Utf8Step step = text::utf8_step(text, at);
    std::size_t end = at + step.size;
    if (kBreaks.find(step.value) != std::u32string_view::npos) {
      if (step.value == '\r' && end < text.size() && text[end] == '\n') ++end;
      lines.emplace_back(text.substr(begin, (keep_ends ? end : at) - begin));
      begin = end;
    }
    at = end;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) return {};
  const std::size_t first = text::utf8_size(text.front());
  return text::to_upper(text.substr(0, first)) + text::to_lower(text.substr(first));
}

const std::map<std::string, Method>& text_methods() {
  static const std::map<std::string, Method> kMethods{
      {"capitalize", capitalize},
      {"count", count},
      {"endswith", endswith},
      {"find", find},
      {"index", index},
      {"isalnum", isalnum},
      {"isalpha", isalpha},
      {"isdigit", isdigit},
      {"islower", islower},
      {"isspace", isspace},
      {"isupper", isupper},
      {"join", join},
      {"lower", lower},
      {"lstrip", strip_side<Side::left>},
      {"partition", partition},
      {"removeprefix", removeprefix},
      {"removesuffix", removesuffix},
      {"replace", replace},
      {"rfind", rfind},
      {"rsplit", rsplit},
      {"rstrip", strip_side<Side::right>},
      {"split", split},
      {"splitlines", splitlines},
      {"startswith", startswith},
      {"strip", strip_side<Side::both>},
      {"title", title},
      {"upper", upper},
  };
  return kMethods;
}

}  // namespace sangam::jinja
