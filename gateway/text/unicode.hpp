// UTF-8 and the few properties of Unicode that tokenizers and templates ask for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sangam::text {

/// One step through UTF-8. `size` is the number of bytes that belong together: a whole character, or the
/// longest part that cannot become one (which decoders replace by one U+FFFD), or an unfinished tail.
struct Utf8Step {
  enum class Kind { character, ill_formed, unfinished };
  Kind kind = Kind::character;
  char32_t value = 0;
  std::size_t size = 0;
};

/// The step at `at`, which lies inside `bytes`.
[[nodiscard]] Utf8Step utf8_step(std::string_view bytes, std::size_t at);

/// Bytes of the character that starts with `lead`; the text is known to be well-formed.
[[nodiscard]] constexpr std::size_t utf8_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

void append_utf8(std::string& out, char32_t character);

[[nodiscard]] bool is_ascii(std::string_view text);
[[nodiscard]] bool is_well_formed(std::string_view bytes);

/// What Python's `bytes.decode("utf-8", "replace")` gives.
[[nodiscard]] std::string replace_ill_formed(std::string_view bytes);

[[nodiscard]] bool is_white_space(char32_t character);  ///< The property White_Space.
[[nodiscard]] bool is_word(char32_t character);         ///< \w of UTS 18: letters, marks, digits, joiners.
[[nodiscard]] bool is_numeric(char32_t character);      ///< General category N.
[[nodiscard]] bool is_digit(char32_t character);        ///< Numeric type Digit or Decimal.
[[nodiscard]] bool is_letter(char32_t character);       ///< General category L.
[[nodiscard]] bool is_punctuation(char32_t character);  ///< General category P, or ASCII punctuation.
[[nodiscard]] bool is_printable(char32_t character);    ///< As Python's repr sees it.

/// Character by character, without regard to context (a final sigma stays an inner one).
[[nodiscard]] std::string lower_each(std::string_view text);

/// Of whole strings with the root locale's special cases.
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string to_upper(std::string_view text);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
[[nodiscard]] std::string normalize(std::string_view text, NormalForm form);

}  // namespace sangam::text
