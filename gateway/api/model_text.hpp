// A model's words: text to tokens and back, and the chat template. What the API layer needs of a tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Decodes one growing sequence. Text comes out in whole code points only.
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  [[nodiscard]] virtual std::string push(TokenId token) = 0;
  /// What was held back; incomplete code points as U+FFFD.
  [[nodiscard]] virtual std::string finish() = 0;
};

struct ChatTurns {
  std::string messages;       ///< JSON array; every content is a string or null.
  std::string tools;          ///< JSON array; empty: none.
  std::string template_args;  ///< JSON object of further variables; empty: none.
  bool add_generation_prompt = true;
};

/// Immutable, hence shared by threads.
class ModelText {
 public:
  virtual ~ModelText() = default;
  [[nodiscard]] virtual std::vector<TokenId> encode(std::string_view text, bool add_special_tokens) const = 0;
  [[nodiscard]] virtual std::string decode(std::span<const TokenId> tokens, bool skip_special) const = 0;
  /// The exact bytes of one token; may be part of a code point.
  [[nodiscard]] virtual std::string bytes_of(TokenId token) const = 0;
  [[nodiscard]] virtual TokenId vocabulary_size() const = 0;
  [[nodiscard]] virtual Result<std::string> render(const ChatTurns& turns) const = 0;
  [[nodiscard]] virtual std::unique_ptr<TokenStream> stream(bool skip_special) const = 0;
};

}  // namespace sangam
