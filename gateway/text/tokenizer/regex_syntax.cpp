// Where Oniguruma and PCRE2 read the same characters differently: \w, \s, \h, \u, scripts and set operations.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "gateway/text/tokenizer/regex.hpp"

namespace sangam::text {
namespace {

/// Exactly the property White_Space; PCRE2's \s also takes U+180E, which Unicode dropped from it.
constexpr std::string_view kSpaces = "\\t-\\r\\x{85}\\p{Z}";
/// \w of UTS 18 but for the joiners; outside of a set Oniguruma also takes Latin-1's superscripts and
/// fractions.
constexpr std::string_view kWords = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kWordsAlone =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kHexDigits = "0-9A-Fa-f";

bool compiles(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF,
                                   &error, &offset, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size() && refused_.empty()) step();
    if (refused_.empty()) return out_;
    return make_error(ErrorCode::invalid_input, "regular expression " + std::string(pattern_) + " uses " +
                                                    refused_ + " at byte " + std::to_string(at_) +
                                                    ", which is not supported");
  }

 private:
  void step() {
    const char c = pattern_[at_];
    if (c == '\\') return escape();
    if (in_set_) {
      if (c == '[' && pattern_.substr(at_, 2) != "[:") return refuse("a set within a set");
      if (pattern_.substr(at_, 2) == "&&") return refuse("an intersection of sets");
      if (pattern_.substr(at_, 2) == "[:") return posix_class();
      if (c == ']') in_set_ = false;
    } else if (c == '[') {
      return open_set();
    }
    out_ += c;
    ++at_;
  }

  void open_set() {
    in_set_ = true;
    copy(pattern_.substr(at_, 2) == "[^" ? 2 : 1);
    if (at_ < pattern_.size() && pattern_[at_] == ']') out_ += '\\', copy(1);  // A first ] stands for itself.
  }

  void posix_class() {
    const auto end = pattern_.find(":]", at_);
    if (end == std::string_view::npos) return refuse("an unfinished [: :] class");
    if (pattern_.substr(at_, end - at_) != "[:punct") return copy(end + 2 - at_);
    out_ += "\\p{P}\\p{S}";  // PCRE2 takes symbols for punctuation only in ASCII.
    at_ = end + 2;
  }

  void escape() {
    if (at_ + 1 == pattern_.size()) return refuse("a backslash at its end");
    switch (pattern_[at_ + 1]) {
      case 's':
        return members(kSpaces);
      case 'S':
        return complement(kSpaces, "\\P{White_Space}");
      case 'w':
        return members(in_set_ ? kWords : kWordsAlone);
      case 'W':
        return complement(kWordsAlone, {});
      case 'h':
        return members(kHexDigits);
      case 'H':
        return complement(kHexDigits, {});
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point();
      default:
        return copy(2);
    }
  }

  void members(std::string_view set) {
    if (in_set_) {
      out_ += set;
    } else {
      out_.append("[").append(set).append("]");
    }
    at_ += 2;
  }

  /// A complement can join a set only where one property says it.
  void complement(std::string_view set, std::string_view property) {
    if (!in_set_) {
      out_.append("[^").append(set).append("]");
    } else if (!property.empty()) {
      out_ += property;
    } else {
      return refuse("a complement within a set");
    }
    at_ += 2;
  }

  /// A bare script name means Script_Extensions in PCRE2, which also takes signs that scripts share.
  void property() {
    const auto open = at_ + 2;
    const auto close = pattern_.find('}', open);
    if (open >= pattern_.size() || pattern_[open] != '{' || close == std::string_view::npos) return copy(2);
    const bool negated = pattern_.substr(open, 2) == "{^";
    const std::string_view name = pattern_.substr(open + (negated ? 2 : 1), close - open - (negated ? 2 : 1));
    const std::string script = "sc:" + std::string(name);
    out_.append(pattern_.substr(at_, 2)).append(negated ? "{^" : "{");
    out_.append(compiles("\\p{" + script + "}") ? std::string_view(script) : name).append("}");
    at_ = close + 1;
  }

  void code_point() {
    constexpr std::size_t kDigits = 4;
    if (at_ + 2 + kDigits > pattern_.size()) return refuse("an unfinished \\u");
    out_.append("\\x{").append(pattern_.substr(at_ + 2, kDigits)).append("}");
    at_ += 2 + kDigits;
  }

  void copy(std::size_t size) {
    out_ += pattern_.substr(at_, size);
    at_ += size;
  }

  void refuse(std::string what) { refused_ = std::move(what); }

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool in_set_ = false;
  std::string out_;
  std::string refused_;
};

}  // namespace

Result<std::string> pcre2_syntax(std::string_view oniguruma) {
  return Translation(oniguruma).run();
}

std::string regex_escape(std::string_view text) {
  constexpr std::string_view kSpecial = R"(\^$.|?*+()[]{}-#&~ )";
  std::string out;
  for (const char c : text) {
    if (kSpecial.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace sangam::text
