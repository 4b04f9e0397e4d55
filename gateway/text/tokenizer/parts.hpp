// What a tokenizer is made of, as its file lists it.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/text/tokenizer.hpp"
#include "gateway/text/tokenizer/added_tokens.hpp"
#include "gateway/text/tokenizer/bpe.hpp"
#include "gateway/text/tokenizer/normalizer.hpp"
#include "gateway/text/tokenizer/pre_tokenizer.hpp"
#include "gateway/text/tokenizer/token_decoder.hpp"

namespace sangam::text {

/// The tokens that a post-processor puts around a prompt.
struct PromptFrame {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

struct TokenEntry {
  std::string spelling;
  std::string bytes;  ///< Where it is not the first token of a text.
  bool known = false;
  bool special = false;
};

struct SpellingHash : std::hash<std::string_view> {
  using is_transparent = void;
};

struct TokenizerParts {
  AddedTokenFinder raw_tokens;         ///< Those that are looked for before normalization.
  AddedTokenFinder normalized_tokens;  ///< Those that are looked for after it.
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  PromptFrame frame;
  TokenDecoder decoder;
  bool byte_fallback = false;      ///< Of the decoder.
  std::vector<TokenEntry> tokens;  ///< By id.
  std::unordered_map<std::string, TokenId, SpellingHash, std::equal_to<>> ids;
  std::vector<Tokenizer::RoleToken> roles;
};

}  // namespace sangam::text
