// Tags, the blanks around them, and the tokens within them.
#include "gateway/text/jinja/lexer.hpp"

#include <algorithm>
#include <array>

#include "gateway/text/jinja/python_text.hpp"
#include "gateway/text/jinja/string_literal.hpp"
#include "gateway/text/jinja/syntax_error.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::jinja {
namespace {

using Kind = Token::Kind;
constexpr auto kNowhere = std::string_view::npos;

/// One kind of line end, and none at the very end.
std::string with_plain_lines(std::string_view source) {
  std::string out;
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r') {
      out += source[at];
    } else if (source.substr(at, 2) != "\r\n") {
      out += '\n';
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : plain_(with_plain_lines(source)), source_(plain_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    emit(Kind::end, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw TemplateSyntaxError(message, line_); }

  void emit(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  /// Moves on and counts lines.
  void advance(std::size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    if (end > at_) line_starting_ = source_[end - 1] == '\n';
    at_ = end;
  }

  [[nodiscard]] bool at(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  [[nodiscard]] std::size_t blanks_end(std::size_t from) const {
    return source_.size() - strip(source_.substr(from), Side::left).size();
  }

  void root() {
    std::size_t tag = source_.find('{', at_);
    while (tag != kNowhere &&
           (tag + 1 == source_.size() || std::string_view("%{#").find(source_[tag + 1]) == kNowhere)) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == kNowhere) {
      emit(Kind::text, std::string(source_.substr(at_)));
      return advance(source_.size());
    }
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    const bool has_sign = sign == '-' || sign == '+';
    emit_text(source_.substr(at_, tag - at_), sign, source_[tag + 1] != '{');
    const char kind = source_[tag + 1];
    advance(tag + (has_sign ? 3 : 2));
    if (kind == '#') return comment();
    if (kind == '{') return variable();
    const std::size_t raw = raw_tag_end();
    raw != kNowhere ? raw_text(raw) : block();
  }

  void emit_text(std::string_view text, char sign, bool may_strip) {
    if (sign == '-') {
      text = strip(text, Side::right);
    } else if (sign != '+' && may_strip) {
      const std::size_t line_begin = text.rfind('\n') + 1;
      const bool starts_line = line_begin > 0 || line_starting_;
      if (starts_line && strip(text.substr(line_begin), Side::left).empty())
        text = text.substr(0, line_begin);
    }
    if (!text.empty()) emit(Kind::text, std::string(text));
  }

  /// Behind the end of a tag: `-` takes all blanks, a block's end takes one line end unless `+` keeps it.
  [[nodiscard]] std::size_t behind_end(char sign, std::size_t end, bool trims_line) const {
    if (sign == '-') return blanks_end(end);
    return trims_line && sign != '+' && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == kNowhere) fail("Missing end of comment tag");
    const char sign = end > at_ ? source_[end - 1] : ' ';
    advance(behind_end(sign, end + 2, true));
  }

  /// If the block is {% raw %}: where its text begins.
  [[nodiscard]] std::size_t raw_tag_end() const {
    std::size_t at = blanks_end(at_);
    if (!source_.substr(at).starts_with("raw")) return kNowhere;
    at = blanks_end(at + 3);
    if (source_.substr(at).starts_with("-%}")) return blanks_end(at + 3);
    return source_.substr(at).starts_with("%}") ? at + 2 : kNowhere;
  }

  void raw_text(std::size_t begin) {
    advance(begin);
    for (std::size_t tag = source_.find("{%", begin); tag != kNowhere; tag = source_.find("{%", tag + 2)) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
      std::size_t end = blanks_end(tag + (sign == '-' || sign == '+' ? 3 : 2));
      if (!source_.substr(end).starts_with("endraw")) continue;
      end = blanks_end(end + 6);
      const char end_sign = end < source_.size() ? source_[end] : ' ';
      if (end_sign == '-' || end_sign == '+') ++end;
      if (!source_.substr(end).starts_with("%}")) continue;
      emit_text(source_.substr(begin, tag - begin), sign, true);
      return advance(behind_end(end_sign, end + 2, true));
    }
    fail("Missing end of raw directive");
  }

  void variable() {
    emit(Kind::variable_begin, {});
    while (!closes("}}", false)) expression_token();
    emit(Kind::variable_end, {});
    advance(close_);
  }

  void block() {
    emit(Kind::block_begin, {});
    while (!closes("%}", true)) expression_token();
    emit(Kind::block_end, {});
    advance(close_);
  }

  /// Whether the tag ends here; brackets must be closed first.
  bool closes(std::string_view end, bool is_block) {
    advance(blanks_end(at_));
    if (at_ == source_.size()) fail("unexpected end of template");
    if (!brackets_.empty()) return false;
    const bool has_sign = at("-") || (is_block && at("+"));
    if (!source_.substr(at_ + (has_sign ? 1 : 0)).starts_with(end)) return false;
    close_ = behind_end(has_sign ? source_[at_] : ' ', at_ + (has_sign ? 3 : 2), is_block);
    return true;
  }

  void expression_token() {
    const char c = source_[at_];
    if (c == '\'' || c == '"') return string();
    if (is_digit(c)) return number();
    if (is_name_character(c)) return name();
    sign();
  }

  void string() {
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(std::string("unexpected char ") + quote + ": the string does not end");
    emit(Kind::string, unescape(source_.substr(at_ + 1, end - at_ - 1), line_));
    advance(end + 1);
  }

  [[nodiscard]] std::size_t digits_end(std::size_t from) const {
    while (from < source_.size() &&
           (is_digit(source_[from]) ||
            (source_[from] == '_' && from + 1 < source_.size() && is_digit(source_[from + 1])))) {
      ++from;
    }
    return from;
  }

  void number() {
    const char base = at_ + 1 < source_.size() && source_[at_] == '0'
                          ? static_cast<char>(std::tolower(source_[at_ + 1]))
                          : ' ';
    if (base == 'x' || base == 'o' || base == 'b') {
      std::size_t end = at_ + 2;
      while (end < source_.size() &&
             (std::isxdigit(static_cast<unsigned char>(source_[end])) != 0 || source_[end] == '_'))
        ++end;
      emit(Kind::integer, std::string(source_.substr(at_, end - at_)));
      return advance(end);
    }
    const bool may_be_real = at_ == 0 || source_[at_ - 1] != '.';
    std::size_t end = digits_end(at_);
    const std::size_t integer_end = end;
    if (may_be_real && end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1]))
      end = digits_end(end + 1);
    if (may_be_real) end = exponent_end(end);
    std::string digits(source_.substr(at_, end - at_));
    std::erase(digits, '_');
    emit(end > integer_end ? Kind::real : Kind::integer, std::move(digits));
    advance(end);
  }

  [[nodiscard]] std::size_t exponent_end(std::size_t from) const {
    if (from >= source_.size() || (source_[from] != 'e' && source_[from] != 'E')) return from;
    std::size_t digits = from + 1;
    if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
    return digits < source_.size() && is_digit(source_[digits]) ? digits_end(digits) : from;
  }

  void name() {
    std::size_t end = at_;
    while (end < source_.size() && is_name_character(source_[end])) ++end;
    emit(Kind::name, std::string(source_.substr(at_, end - at_)));
    advance(end);
  }

  void sign() {
    static constexpr std::array<std::string_view, 26> kSigns{
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found = std::find_if(kSigns.begin(), kSigns.end(), [this](auto text) { return at(text); });
    if (found == kSigns.end()) fail(std::string("unexpected char '") + source_[at_] + "'");
    balance(found->front());
    emit(Kind::sign, std::string(*found));
    advance(at_ + found->size());
  }

  void balance(char bracket) {
    if (bracket == '(') brackets_ += ')';
    if (bracket == '[') brackets_ += ']';
    if (bracket == '{') brackets_ += '}';
    if (bracket != ')' && bracket != ']' && bracket != '}') return;
    if (brackets_.empty()) fail(std::string("unexpected '") + bracket + "'");
    if (brackets_.back() != bracket) {
      fail(std::string("unexpected '") + bracket + "', expected '" + brackets_.back() + "'");
    }
    brackets_.pop_back();
  }

  std::string plain_;
  std::string_view source_;
  std::size_t at_ = 0;
  std::size_t close_ = 0;  ///< Where the text goes on behind the tag whose end was just found.
  int line_ = 1;
  bool line_starting_ = true;  ///< The last thing read ended a line.
  std::string brackets_;       ///< The closing brackets that are due, innermost last.
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(text::is_well_formed(source) ? std::string(source) : text::replace_ill_formed(source)).run();
}

}  // namespace sangam::jinja
