// Printable bytes of Latin-1 stand for themselves; the other 68 get the code points from U+0100 on.
#include "gateway/text/tokenizer/byte_alphabet.hpp"

#include <array>

#include "gateway/text/unicode.hpp"

namespace sangam::text {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
constexpr std::size_t kSubstitutes = 68;
constexpr std::size_t kLetters = kFirstSubstitute + kSubstitutes;
constexpr int kNoLetter = -1;

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<int, kLetters> make_letters() {
  std::array<int, kLetters> byte_of{};
  byte_of.fill(kNoLetter);
  std::size_t substitute = kFirstSubstitute;
  for (int byte = 0; byte < 256; ++byte) {
    byte_of[stands_for_itself(byte) ? static_cast<std::size_t>(byte) : substitute++] = byte;
  }
  return byte_of;
}

constexpr std::array<int, kLetters> kByteOf = make_letters();

}  // namespace

std::optional<std::string> bytes_spelled(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const Utf8Step step = utf8_step(token, at);
    if (step.value >= kLetters || kByteOf[step.value] == kNoLetter) return std::nullopt;
    bytes += static_cast<char>(kByteOf[step.value]);
    at += step.size;
  }
  return bytes;
}

}  // namespace sangam::text
