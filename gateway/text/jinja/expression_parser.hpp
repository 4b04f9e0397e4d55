// The grammar of expressions, one function a level of precedence.
#pragma once

#include "gateway/text/jinja/ast.hpp"
#include "gateway/text/jinja/token_stream.hpp"

namespace sangam::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenCursor& stream) : stream_(stream) {}

  [[nodiscard]] ExpressionPtr expression();
  /// Without `a if b else c` at the outer level: what stands behind `in` of a for.
  [[nodiscard]] ExpressionPtr expressions_without_condition();
  /// One expression, or several with commas between them: a tuple.
  [[nodiscard]] ExpressionPtr expressions();
  /// Filters behind each other, starting with a name, over what a block captures.
  [[nodiscard]] ExpressionPtr filters_of_block();
  [[nodiscard]] Target target(bool may_have_attribute);

 private:
  using Level = ExpressionPtr (ExpressionParser::*)();

  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr joined();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr signed_operand() { return unary(true); }
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr strings();
  ExpressionPtr number();
  ExpressionPtr parenthesized();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr operand);
  ExpressionPtr filters_and_tests(ExpressionPtr operand);
  ExpressionPtr attribute(ExpressionPtr of);
  ExpressionPtr subscripted(ExpressionPtr of);
  ExpressionPtr call(ExpressionPtr callee);
  ExpressionPtr filter(ExpressionPtr subject);
  ExpressionPtr test(ExpressionPtr subject);
  ArgumentList arguments();
  void argument(ArgumentList& list);
  void test_argument(ArgumentList& list);
  ExpressionPtr sequence(Level item, bool may_be_empty);
  ExpressionPtr calculated(Level operand,
                           std::initializer_list<std::pair<std::string_view, Arithmetic>> operations);
  [[nodiscard]] bool ends_sequence() const;
  [[nodiscard]] std::string dotted_name();
  Target single_target(bool may_have_attribute);

  template <class Node>
  [[nodiscard]] ExpressionPtr make(int line, Node node) const {
    return std::make_unique<const Expression>(Expression{line, std::move(node)});
  }

  /// Counts the links of a chain like `a.b.c` or `a + b + c`: its tree is as deep as it is long.
  void link(int& links) const;

  TokenCursor& stream_;
  int depth_ = 0;
};

}  // namespace sangam::jinja
