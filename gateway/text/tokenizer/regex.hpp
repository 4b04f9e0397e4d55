// Regular expressions as `tokenizer.json` writes them (Oniguruma's Ruby syntax), run by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam::text {

/// Bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A compiled pattern. Copies share it; matching is const and may run in many threads at once.
class Regex {
 public:
  [[nodiscard]] static Result<Regex> compile(std::string_view pattern);

  /// All matches from left to right, none overlapping, none empty right behind another. `text` is
  /// well-formed UTF-8. Throws std::bad_alloc where a pattern backtracks until memory ends.
  [[nodiscard]] std::vector<Span> matches(std::string_view text) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

/// The pattern that matches exactly `text`.
[[nodiscard]] std::string regex_escape(std::string_view text);

/// The same language in PCRE2's syntax; an error names the construct that has no counterpart. Where case is
/// ignored, single characters are folded, but not one into two ("ss" does not match the sharp s).
[[nodiscard]] Result<std::string> pcre2_syntax(std::string_view oniguruma);

}  // namespace sangam::text
