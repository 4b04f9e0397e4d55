// UTF-8 by hand, properties and normal forms by ICU.
#include "gateway/text/unicode.hpp"

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "messages/vocabulary/assert.hpp"

namespace sangam::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// What the lead byte promises: how many bytes follow, and the range of the first of them, which rules out
/// overlong forms, surrogates and values over U+10FFFF (Unicode 15, table 3-7).
struct Lead {
  std::size_t following = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {};
}

std::string from_icu(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

icu::UnicodeString to_icu(std::string_view text) {
  return icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
}

const icu::Normalizer2& normalizer(NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  switch (form) {
    case NormalForm::nfc:
      found = icu::Normalizer2::getNFCInstance(status);
      break;
    case NormalForm::nfd:
      found = icu::Normalizer2::getNFDInstance(status);
      break;
    case NormalForm::nfkc:
      found = icu::Normalizer2::getNFKCInstance(status);
      break;
    case NormalForm::nfkd:
      found = icu::Normalizer2::getNFKDInstance(status);
      break;
  }
  SANGAM_ASSERT(U_SUCCESS(status) && found != nullptr, u_errorName(status));
  return *found;
}

}  // namespace

Utf8Step utf8_step(std::string_view bytes, std::size_t at) {
  using Kind = Utf8Step::Kind;
  const auto first = static_cast<unsigned char>(bytes[at]);
  if (first < 0x80) return {Kind::character, first, 1};
  const Lead lead = lead_of(first);
  if (lead.following == 0) return {Kind::ill_formed, 0, 1};

  char32_t value = first & (0x3Fu >> lead.following);
  for (std::size_t i = 1; i <= lead.following; ++i) {
    if (at + i == bytes.size()) return {Kind::unfinished, 0, i};
    const auto byte = static_cast<unsigned char>(bytes[at + i]);
    if (byte < (i == 1 ? lead.low : 0x80) || byte > (i == 1 ? lead.high : 0xBF)) {
      return {Kind::ill_formed, 0, i};
    }
    value = value << 6 | (byte & 0x3Fu);
  }
  return {Kind::character, value, lead.following + 1};
}

void append_utf8(std::string& out, char32_t c) {
  const auto byte = [&out](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | c >> 6), byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 0x3F)), byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 0x3F)), byte(0x80 | (c >> 6 & 0x3F)),
        byte(0x80 | (c & 0x3F));
  }
}

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

bool is_well_formed(std::string_view bytes) {
  if (is_ascii(bytes)) return true;
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, at);
    if (step.kind != Utf8Step::Kind::character) return false;
    at += step.size;
  }
  return true;
}

std::string replace_ill_formed(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, at);
    out += step.kind == Utf8Step::Kind::character ? bytes.substr(at, step.size) : kReplacement;
    at += step.size;
  }
  return out;
}

bool is_white_space(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c));
}

bool is_word(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  constexpr uint32_t kMarksDigitsConnectors = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_isUAlphabetic(point) || (U_GET_GC_MASK(point) & kMarksDigitsConnectors) != 0 ||
         u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL);
}

bool is_numeric(char32_t c) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_N_MASK) != 0;
}

bool is_digit(char32_t c) {
  const int type = u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

bool is_letter(char32_t c) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_L_MASK) != 0;
}

bool is_punctuation(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  if (c < 0x80) return c > ' ' && c < 0x7F && !u_isalnum(point);
  return (U_GET_GC_MASK(point) & U_GC_P_MASK) != 0;
}

bool is_printable(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  return c == ' ' || (U_GET_GC_MASK(point) & (U_GC_C_MASK | U_GC_Z_MASK)) == 0;
}

std::string lower_each(std::string_view text) {
  constexpr char32_t kDottedCapitalI = 0x130;  // The one character whose lower case is two characters.
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.value == kDottedCapitalI) {
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<char32_t>(u_tolower(static_cast<UChar32>(step.value))));
    }
    at += step.size;
  }
  return out;
}

std::string to_lower(std::string_view text) {
  return from_icu(to_icu(text).toLower(icu::Locale::getRoot()));
}
std::string to_upper(std::string_view text) {
  return from_icu(to_icu(text).toUpper(icu::Locale::getRoot()));
}

std::string normalize(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  UErrorCode status = U_ZERO_ERROR;
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<int32_t>(text.size()));
  normalizer(form).normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
                                 nullptr, status);
  SANGAM_ASSERT(U_SUCCESS(status), u_errorName(status));
  return out;
}

}  // namespace sangam::text
