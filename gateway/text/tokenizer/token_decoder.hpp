// From a token's spelling in the vocabulary to the bytes that it stands for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/text/tokenizer/regex.hpp"

namespace sangam::text {

/// The decoder part of `tokenizer.json`: steps on single tokens, then at most one rule on the whole text.
class TokenDecoder {
 public:
  struct ByteLevel {};
  struct ByteFallback {};  ///< `<0xNN>` is a byte.
  struct Spaced {};        ///< No decoder: tokens are joined by blanks.
  struct Replace {
    Regex pattern;
    std::string content;
  };
  struct Strip {
    std::string content;  ///< One character.
    std::size_t start = 0;
    std::size_t stop = 0;
  };
  struct Metaspace {
    std::string replacement;
    bool prepended = true;  ///< The first token's mark was added by the encoder.
  };
  using Step = std::variant<ByteLevel, ByteFallback, Spaced, Replace, Strip, Metaspace>;

  TokenDecoder() = default;
  /// `text_start` is what a Strip behind Fuse takes from the beginning of the whole text.
  TokenDecoder(std::vector<Step> steps, Strip text_start)
      : steps_(std::move(steps)), text_start_(std::move(text_start)) {}

  /// `first`: no token stands before this one.
  [[nodiscard]] std::string bytes(std::string_view token, bool first) const;
  [[nodiscard]] const Strip& text_start() const { return text_start_; }
  /// Bytes come one by one, and each that belongs to no character is replaced on its own.
  [[nodiscard]] bool byte_fallback() const;

 private:
  std::vector<Step> steps_;
  Strip text_start_;
};

}  // namespace sangam::text
