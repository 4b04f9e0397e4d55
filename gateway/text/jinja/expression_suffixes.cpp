// What stands behind an operand: attributes, subscripts, calls, filters and tests.
#include "gateway/text/jinja/expression_parser.hpp"

namespace sangam::jinja {

using Kind = Token::Kind;

ExpressionPtr ExpressionParser::postfix(ExpressionPtr operand) {
  for (int links = 0;; link(links)) {
    if (stream_.at_sign(".")) {
      operand = attribute(std::move(operand));
    } else if (stream_.at_sign("[")) {
      operand = subscripted(std::move(operand));
    } else if (stream_.at_sign("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr operand) {
  for (int links = 0;; link(links)) {
    if (stream_.at_sign("|")) {
      stream_.take();
      operand = filter(std::move(operand));
    } else if (stream_.at_name("is")) {
      operand = test(std::move(operand));
    } else if (stream_.at_sign("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::attribute(ExpressionPtr of) {
  const int line = stream_.take().line;
  if (stream_.at(Kind::integer)) return make(line, SubscriptOf{std::move(of), number()});
  return make(line, AttributeOf{std::move(of), stream_.expect_any_name()});
}

ExpressionPtr ExpressionParser::subscripted(ExpressionPtr of) {
  const int line = stream_.take().line;
  const auto part = [this] { return stream_.at_sign(":") || stream_.at_sign("]") ? nullptr : expression(); };
  ExpressionPtr first = part();
  if (!stream_.at_sign(":")) {
    if (first == nullptr) stream_.fail_unexpected("an expression");
    stream_.expect_sign("]");
    return make(line, SubscriptOf{std::move(of), std::move(first)});
  }
  stream_.take();
  ExpressionPtr stop = part();
  ExpressionPtr step = stream_.skip_sign(":") ? part() : nullptr;
  stream_.expect_sign("]");
  return make(line, SliceOf{std::move(of), std::move(first), std::move(stop), std::move(step)});
}

ExpressionPtr ExpressionParser::call(ExpressionPtr callee) {
  const int line = stream_.line();
  return make(line, CallOf{std::move(callee), arguments()});
}

ArgumentList ExpressionParser::arguments() {
  stream_.expect_sign("(");
  ArgumentList list;
  while (!stream_.at_sign(")")) {
    argument(list);
    if (!stream_.skip_sign(",")) break;
  }
  stream_.expect_sign(")");
  return list;
}

void ExpressionParser::argument(ArgumentList& list) {
  const auto ensure = [this](bool valid) {
    if (!valid) stream_.fail("invalid syntax for function call expression");
  };
  if (stream_.skip_sign("*")) {
    ensure(list.more_positional == nullptr && list.more_keyword == nullptr);
    list.more_positional = expression();
  } else if (stream_.skip_sign("**")) {
    ensure(list.more_keyword == nullptr);
    list.more_keyword = expression();
  } else if (stream_.at(Kind::name) && stream_.sign_follows("=")) {
    ensure(list.more_keyword == nullptr);
    std::string name = stream_.take().text;
    stream_.take();
    list.keyword.emplace_back(std::move(name), expression());
  } else {
    ensure(list.keyword.empty() && list.more_positional == nullptr && list.more_keyword == nullptr);
    list.positional.push_back(expression());
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = stream_.expect_any_name();
  while (stream_.skip_sign(".")) name += "." + stream_.expect_any_name();
  return name;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr subject) {
  const int line = stream_.line();
  const std::string name = dotted_name();
  const Filter filter = find_filter(name);
  if (filter == nullptr) stream_.fail("No filter named '" + name + "'.");
  return make(line,
              Filtered{std::move(subject), filter, stream_.at_sign("(") ? arguments() : ArgumentList{}});
}

ExpressionPtr ExpressionParser::filters_of_block() {
  ExpressionPtr filtered = filter(make(stream_.line(), Captured{}));
  for (int links = 0; stream_.skip_sign("|"); link(links)) filtered = filter(std::move(filtered));
  return filtered;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr subject) {
  const int line = stream_.take().line;
  const bool negated = stream_.skip_name("not");
  const std::string name = dotted_name();
  const Test test = find_test(name);
  if (test == nullptr) stream_.fail("No test named '" + name + "'.");
  ArgumentList list;
  if (stream_.at_sign("(")) {
    list = arguments();
  } else {
    test_argument(list);
  }
  ExpressionPtr tested = make(line, Tested{std::move(subject), test, std::move(list)});
  return negated ? make(line, Not{std::move(tested)}) : std::move(tested);
}

/// One operand may stand behind a test without brackets: `x is divisibleby 3`.
void ExpressionParser::test_argument(ArgumentList& list) {
  const bool ends = stream_.at_name("else") || stream_.at_name("or") || stream_.at_name("and");
  const bool begins = stream_.at(Kind::name) || stream_.at(Kind::string) || stream_.at(Kind::integer) ||
                      stream_.at(Kind::real) || stream_.at_sign("[") || stream_.at_sign("{");
  if (ends || !begins) return;
  if (stream_.at_name("is")) stream_.fail("You cannot chain multiple tests with is");
  list.positional.push_back(postfix(primary()));
}

}  // namespace sangam::jinja
