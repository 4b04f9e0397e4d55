// Python's escapes in strings.
#include "gateway/text/jinja/string_literal.hpp"

#include <charconv>

#include "gateway/text/jinja/syntax_error.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::jinja {
namespace {

class Unescaper {
 public:
  Unescaper(std::string_view literal, int line) : literal_(literal), line_(line) {}

  std::string run() {
    while (at_ < literal_.size()) {
      if (literal_[at_] == '\\' && at_ + 1 < literal_.size()) {
        escape();
      } else {
        out_ += literal_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  void escape() {
    const char c = literal_[at_ + 1];
    static constexpr std::string_view kLetters = "abfnrtv\\'\"";
    static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    const auto known = kLetters.find(c);
    at_ += 2;
    if (known != std::string_view::npos) {
      out_ += kMeanings[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      code_point(c == 'x' ? 2 : c == 'u' ? 4 : 8);
    } else if (c >= '0' && c <= '7') {
      octal();
    } else if (c != '\n') {  // A line end behind a backslash vanishes.
      out_.append("\\").append(1, c);
    }
  }

  void append(unsigned value) {
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      throw TemplateSyntaxError("the escape in a string is no character", line_);
    }
    text::append_utf8(out_, value);
  }

  void code_point(std::size_t digits) {
    unsigned value = 0;
    const char* begin = literal_.data() + at_;
    const char* end = begin + std::min(digits, literal_.size() - at_);
    const auto [stop, error] = std::from_chars(begin, end, value, 16);
    if (error != std::errc() || stop != begin + digits)
      throw TemplateSyntaxError("truncated escape in a string", line_);
    at_ += digits;
    append(value);
  }

  void octal() {
    unsigned value = 0;
    --at_;
    for (int i = 0; i < 3 && at_ < literal_.size() && literal_[at_] >= '0' && literal_[at_] <= '7'; ++i) {
      value = value * 8 + static_cast<unsigned>(literal_[at_++] - '0');
    }
    append(value);
  }

  std::string_view literal_;
  int line_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string unescape(std::string_view literal, int line) {
  return Unescaper(literal, line).run();
}

}  // namespace sangam::jinja
