// Tokens one after the other, and what a parser asks of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/text/jinja/lexer.hpp"

namespace sangam::jinja {

class TokenCursor {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& following() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  [[nodiscard]] int line() const { return current().line; }
  [[nodiscard]] bool at(Token::Kind kind) const { return current().kind == kind; }
  [[nodiscard]] bool at_sign(std::string_view text) const { return is(current(), Token::Kind::sign, text); }
  [[nodiscard]] bool at_name(std::string_view text) const { return is(current(), Token::Kind::name, text); }
  [[nodiscard]] bool name_follows(std::string_view text) const {
    return is(following(), Token::Kind::name, text);
  }
  [[nodiscard]] bool sign_follows(std::string_view text) const {
    return is(following(), Token::Kind::sign, text);
  }

  /// The current token; the stream moves on.
  Token take();
  /// Takes it only if it is the one.
  bool skip_sign(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_sign(std::string_view text);
  void expect_name(std::string_view text);
  std::string expect_any_name();
  void expect(Token::Kind kind);

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_unexpected(const std::string& wanted) const;

 private:
  [[nodiscard]] static bool is(const Token& token, Token::Kind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }

  std::vector<Token> tokens_;  // The last is the end, which is never passed.
  std::size_t at_ = 0;
};

}  // namespace sangam::jinja
