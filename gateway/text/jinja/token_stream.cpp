// Taking tokens, and saying which one was wrong.
#include "gateway/text/jinja/token_stream.hpp"

#include "gateway/text/jinja/syntax_error.hpp"

namespace sangam::jinja {
namespace {

std::string described(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "the end of the template";
    case Token::Kind::block_end:
      return "the end of the statement block";
    case Token::Kind::variable_end:
      return "the end of the print statement";
    case Token::Kind::text:
      return "text";
    case Token::Kind::block_begin:
      return "the begin of a statement block";
    case Token::Kind::variable_begin:
      return "the begin of a print statement";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace

Token TokenCursor::take() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenCursor::skip_sign(std::string_view text) {
  if (!at_sign(text)) return false;
  take();
  return true;
}

bool TokenCursor::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  take();
  return true;
}

void TokenCursor::expect_sign(std::string_view text) {
  if (!skip_sign(text)) fail_unexpected("'" + std::string(text) + "'");
}

void TokenCursor::expect_name(std::string_view text) {
  if (!skip_name(text)) fail_unexpected("'" + std::string(text) + "'");
}

std::string TokenCursor::expect_any_name() {
  if (!at(Token::Kind::name)) fail_unexpected("a name");
  return take().text;
}

void TokenCursor::expect(Token::Kind kind) {
  if (!at(kind)) fail_unexpected(described({kind, {}, 0}));
  take();
}

void TokenCursor::fail(const std::string& message) const {
  throw TemplateSyntaxError(message, line());
}

void TokenCursor::fail_unexpected(const std::string& wanted) const {
  fail("expected " + wanted + ", got " + described(current()));
}

}  // namespace sangam::jinja
