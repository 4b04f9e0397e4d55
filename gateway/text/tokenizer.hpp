// Text to tokens and back, as the model's own `tokenizer.json` says.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

namespace text {
struct TokenizerParts;
}

/// Byte-pair tokenizers of the families that we serve (Llama 3, Qwen 2.5 and 3, Mistral), equal to the
/// Hugging Face library. Immutable: all verbs may be called from many threads at once.
class Tokenizer {
 public:
  /// A token that the configuration gives a role: bos, eos, pad, unk.
  struct RoleToken {
    std::string role;  ///< As the configuration and chat templates spell it: "bos_token".
    std::string text;
    std::optional<TokenId> id;  ///< Nothing where the vocabulary lacks it.
  };

  /// Reads `tokenizer.json`, and `tokenizer_config.json` and `special_tokens_map.json` where they exist.
  [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> load(const std::filesystem::path& folder);

  explicit Tokenizer(std::unique_ptr<const text::TokenizerParts> parts);
  ~Tokenizer();

  /// Ill-formed UTF-8 is read as U+FFFD, one for each part that cannot become a character. Special tokens
  /// within the text are recognized; `add_special_tokens` adds those that begin and end a prompt.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, bool add_special_tokens) const;

  /// What a Detokenizer gives for `tokens`. Unknown ids are passed over.
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens, bool skip_special_tokens) const;

  /// The exact bytes of one token, which may be part of a character; empty for an unknown id.
  [[nodiscard]] const std::string& bytes_of(TokenId token) const;
  /// The token as the vocabulary spells it, empty for an unknown id.
  [[nodiscard]] const std::string& spelling_of(TokenId token) const;
  [[nodiscard]] std::optional<TokenId> find(std::string_view spelling) const;
  [[nodiscard]] bool is_special(TokenId token) const;

  /// One more than the highest id.
  [[nodiscard]] std::size_t size() const;

  [[nodiscard]] std::optional<TokenId> bos() const { return id_of("bos_token"); }
  [[nodiscard]] std::optional<TokenId> eos() const { return id_of("eos_token"); }
  [[nodiscard]] std::optional<TokenId> pad() const { return id_of("pad_token"); }
  /// Those that the configuration names; chat templates see them as variables.
  [[nodiscard]] const std::vector<RoleToken>& roles() const;

 private:
  friend class Detokenizer;
  [[nodiscard]] std::optional<TokenId> id_of(std::string_view role) const;

  std::unique_ptr<const text::TokenizerParts> parts_;
};

/// Tokens to text, one by one. Holds back only the bytes of a character that is not complete; what cannot
/// become a character is U+FFFD. The tokenizer outlives it.
class Detokenizer {
 public:
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);

  /// The text that `token` completes, often empty.
  [[nodiscard]] std::string push(TokenId token);
  /// What is left when no more tokens come.
  [[nodiscard]] std::string finish();

 private:
  [[nodiscard]] std::string take_characters(bool at_end);
  void strip_start(std::string& text);

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  bool first_ = true;
  std::size_t strips_left_;
  std::string pending_;  // At most three bytes between calls.
};

}  // namespace sangam
