// Tokens that are found in the text as they are, before any cutting: chat marks, tool marks and the like.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/text/tokenizer/regex.hpp"
#include "messages/vocabulary/names.hpp"

namespace sangam::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  ///< Not inside a word.
  bool lstrip = false;       ///< Takes the blanks on its left with it.
  bool rstrip = false;       ///< Takes the blanks on its right with it.
  bool normalized = false;   ///< Is looked for in the normalized text, in its normalized spelling.
  bool special = false;      ///< Not part of what the model says.
};

/// Finds tokens by their spelling: from left to right, the longest first.
class AddedTokenFinder {
 public:
  struct Fragment {
    std::optional<TokenId> token;  ///< Nothing for the text between tokens.
    Span span;
  };

  /// `spelling` may differ from the content where the normalizer changes it.
  void add(const AddedToken& token, std::string_view spelling);

  [[nodiscard]] std::vector<Fragment> split(std::string_view text) const;

 private:
  struct Node {
    std::vector<std::pair<char, std::size_t>> children;
    std::optional<std::size_t> token;
  };
  struct Match {
    std::size_t token = 0;
    Span span;
  };

  [[nodiscard]] std::optional<Match> longest_at(std::string_view text, std::size_t at) const;
  [[nodiscard]] bool admits(const AddedToken& token, std::string_view text, Span span) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{Node{}};  // A tree of bytes; the first node is its root.
  std::array<bool, 256> starts_{};   // Which bytes begin a token: most text is skipped by this alone.
};

}  // namespace sangam::text
