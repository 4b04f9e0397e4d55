// The steps of a decoder.
#include "gateway/text/tokenizer/token_decoder.hpp"

#include <charconv>

#include "gateway/text/tokenizer/byte_alphabet.hpp"
#include "gateway/text/tokenizer/normalizer.hpp"

namespace sangam::text {
namespace {

/// A token on its way through the steps.
struct Token {
  std::string text;
  bool first = false;
  bool is_byte = false;  ///< Final: later steps are on text.
};

std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

void run(const TokenDecoder::ByteLevel&, Token& token) {
  if (auto bytes = bytes_spelled(token.text)) token.text = *std::move(bytes);
}

void run(const TokenDecoder::ByteFallback&, Token& token) {
  const auto byte = fallback_byte(token.text);
  if (!byte) return;
  token.text = std::string(1, *byte);
  token.is_byte = true;
}

void run(const TokenDecoder::Spaced&, Token& token) {
  if (!token.first) token.text.insert(0, " ");
}

void run(const TokenDecoder::Replace& step, Token& token) {
  token.text = replace_all(std::move(token.text), step.pattern, step.content);
}

void run(const TokenDecoder::Strip& step, Token& token) {
  std::string_view text = token.text;
  for (std::size_t i = 0; i < step.start && text.starts_with(step.content); ++i)
    text.remove_prefix(step.content.size());
  for (std::size_t i = 0; i < step.stop && text.ends_with(step.content); ++i)
    text.remove_suffix(step.content.size());
  token.text = std::string(text);
}

void run(const TokenDecoder::Metaspace& step, Token& token) {
  const std::string_view content = token.first && step.prepended ? "" : " ";
  for (auto at = token.text.find(step.replacement); at != std::string::npos;
       at = token.text.find(step.replacement, at + content.size())) {
    token.text.replace(at, step.replacement.size(), content);
  }
}

}  // namespace

std::string TokenDecoder::bytes(std::string_view spelling, bool first) const {
  Token token{std::string(spelling), first};
  for (const Step& step : steps_) {
    if (token.is_byte) break;
    std::visit([&token](const auto& kind) { run(kind, token); }, step);
  }
  return std::move(token.text);
}

bool TokenDecoder::byte_fallback() const {
  for (const Step& step : steps_) {
    if (std::holds_alternative<ByteFallback>(step)) return true;
  }
  return false;
}

}  // namespace sangam::text
