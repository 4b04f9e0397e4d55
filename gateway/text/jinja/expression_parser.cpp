// Precedence from the weakest to the strongest: if, or, and, not, comparisons, + -, ~, * / // %, **, signs.
#include "gateway/text/jinja/expression_parser.hpp"

#include <array>
#include <charconv>

namespace sangam::jinja {
namespace {

using Kind = Token::Kind;

constexpr int kDepthLimit = 60;   // Of brackets, signs and conditions within each other.
constexpr int kChainLimit = 150;  // Of operands in a row.

/// Counts how deep expressions stand in each other, so that no input exhausts the stack.
class Deeper {
 public:
  Deeper(int& depth, const TokenCursor& stream) : depth_(depth) {
    if (++depth_ > kDepthLimit) stream.fail("expressions nest too deep");
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --depth_; }

 private:
  int& depth_;
};

std::optional<Comparison> comparison_sign(const Token& token) {
  static constexpr std::array<std::pair<std::string_view, Comparison>, 6> kSigns{
      {{"==", Comparison::equal},
       {"!=", Comparison::not_equal},
       {"<", Comparison::less},
       {"<=", Comparison::less_equal},
       {">", Comparison::greater},
       {">=", Comparison::greater_equal}}};
  if (token.kind != Kind::sign) return std::nullopt;
  for (const auto& [text, comparison] : kSigns) {
    if (token.text == text) return comparison;
  }
  return std::nullopt;
}

}  // namespace

void ExpressionParser::link(int& links) const {
  if (++links > kChainLimit) stream_.fail("the expression is too long");
}

ExpressionPtr ExpressionParser::expression() {
  const Deeper deeper(depth_, stream_);
  ExpressionPtr value = either();
  for (int links = 0; stream_.at_name("if"); link(links)) {
    const int line = stream_.take().line;
    ExpressionPtr condition = either();
    ExpressionPtr otherwise = stream_.skip_name("else") ? expression() : nullptr;
    value = make(line, Chosen{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExpressionPtr ExpressionParser::expressions() {
  return sequence(&ExpressionParser::expression, false);
}

ExpressionPtr ExpressionParser::expressions_without_condition() {
  return sequence(&ExpressionParser::either, false);
}

bool ExpressionParser::ends_sequence() const {
  return stream_.at(Kind::variable_end) || stream_.at(Kind::block_end) || stream_.at_sign(")") ||
         stream_.at_name("recursive");
}

ExpressionPtr ExpressionParser::sequence(Level item, bool may_be_empty) {
  const int line = stream_.line();
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!ends_sequence()) {
    items.push_back((this->*item)());
    if (!stream_.skip_sign(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && items.size() == 1) return std::move(items.front());
  if (items.empty() && !may_be_empty) stream_.fail_unexpected("an expression");
  return make(line, ListDisplay{std::move(items), true});
}

ExpressionPtr ExpressionParser::either() {
  ExpressionPtr left = both();
  for (int links = 0; stream_.at_name("or"); link(links)) {
    const int line = stream_.take().line;
    left = make(line, Either{std::move(left), both()});
  }
  return left;
}

ExpressionPtr ExpressionParser::both() {
  ExpressionPtr left = negation();
  for (int links = 0; stream_.at_name("and"); link(links)) {
    const int line = stream_.take().line;
    left = make(line, Both{std::move(left), negation()});
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!stream_.at_name("not")) return comparison();
  const Deeper deeper(depth_, stream_);
  const int line = stream_.take().line;
  return make(line, Not{negation()});
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = stream_.line();
  ExpressionPtr first = sum();
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
  while (true) {
    if (const auto sign = comparison_sign(stream_.current())) {
      stream_.take();
      rest.emplace_back(*sign, sum());
    } else if (stream_.skip_name("in")) {
      rest.emplace_back(Comparison::in, sum());
    } else if (stream_.at_name("not") && stream_.name_follows("in")) {
      stream_.take(), stream_.take();
      rest.emplace_back(Comparison::not_in, sum());
    } else {
      break;
    }
  }
  return rest.empty() ? std::move(first) : make(line, Compared{std::move(first), std::move(rest)});
}

ExpressionPtr ExpressionParser::calculated(
    Level operand, std::initializer_list<std::pair<std::string_view, Arithmetic>> operations) {
  ExpressionPtr left = (this->*operand)();
  for (int links = 0;; link(links)) {
    const auto* found = operations.begin();
    while (found != operations.end() && !stream_.at_sign(found->first)) ++found;
    if (found == operations.end()) return left;
    const int line = stream_.take().line;
    ExpressionPtr right = (this->*operand)();
    left = make(line, Calculated{found->second, std::move(left), std::move(right)});
  }
}

ExpressionPtr ExpressionParser::sum() {
  return calculated(&ExpressionParser::joined, {{"+", Arithmetic::add}, {"-", Arithmetic::subtract}});
}

ExpressionPtr ExpressionParser::joined() {
  const int line = stream_.line();
  std::vector<ExpressionPtr> parts;
  parts.push_back(product());
  while (stream_.skip_sign("~")) parts.push_back(product());
  return parts.size() == 1 ? std::move(parts.front()) : make(line, Joined{std::move(parts)});
}

ExpressionPtr ExpressionParser::product() {
  return calculated(&ExpressionParser::power, {{"*", Arithmetic::multiply},
                                               {"/", Arithmetic::divide},
                                               {"//", Arithmetic::floor_divide},
                                               {"%", Arithmetic::modulo}});
}

ExpressionPtr ExpressionParser::power() {
  return calculated(&ExpressionParser::signed_operand, {{"**", Arithmetic::power}});
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Deeper deeper(depth_, stream_);
  const int line = stream_.line();
  ExpressionPtr operand;
  if (stream_.at_sign("-") || stream_.at_sign("+")) {
    const bool is_plus = stream_.take().text == "+";
    operand = make(line, Negated{unary(false), is_plus});
  } else {
    operand = primary();
  }
  operand = postfix(std::move(operand));
  return with_filters ? filters_and_tests(std::move(operand)) : std::move(operand);
}

ExpressionPtr ExpressionParser::primary() {
  switch (stream_.current().kind) {
    case Kind::name:
      return name_or_constant();
    case Kind::string:
      return strings();
    case Kind::integer:
    case Kind::real:
      return number();
    default:
      break;
  }
  if (stream_.at_sign("(")) return parenthesized();
  if (stream_.at_sign("[")) return list();
  if (stream_.at_sign("{")) return dict();
  stream_.fail_unexpected("an expression");
}

ExpressionPtr ExpressionParser::name_or_constant() {
  const Token token = stream_.take();
  if (token.text == "true" || token.text == "True") return make(token.line, Literal{true});
  if (token.text == "false" || token.text == "False") return make(token.line, Literal{false});
  if (token.text == "none" || token.text == "None") return make(token.line, Literal{Value()});
  return make(token.line, Variable{token.text});
}

ExpressionPtr ExpressionParser::strings() {
  const int line = stream_.line();
  std::string text;
  while (stream_.at(Kind::string)) text += stream_.take().text;
  return make(line, Literal{Value(std::move(text))});
}

ExpressionPtr ExpressionParser::number() {
  const Token token = stream_.take();
  if (token.kind == Kind::real) return make(token.line, Literal{std::strtod(token.text.c_str(), nullptr)});
  const char base_letter = token.text.size() > 1 ? static_cast<char>(token.text[1] | 0x20) : ' ';
  const int base = base_letter == 'x' ? 16 : base_letter == 'o' ? 8 : base_letter == 'b' ? 2 : 10;
  std::string digits = token.text.substr(base == 10 ? 0 : 2);
  std::erase(digits, '_');
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    stream_.fail("the number " + token.text + " does not fit into 64 bits");
  }
  return make(token.line, Literal{value});
}

ExpressionPtr ExpressionParser::parenthesized() {
  stream_.take();
  ExpressionPtr inner = sequence(&ExpressionParser::expression, true);
  stream_.expect_sign(")");
  return inner;
}

ExpressionPtr ExpressionParser::list() {
  const int line = stream_.take().line;
  std::vector<ExpressionPtr> items;
  while (!stream_.at_sign("]")) {
    items.push_back(expression());
    if (!stream_.skip_sign(",")) break;
  }
  stream_.expect_sign("]");
  return make(line, ListDisplay{std::move(items), false});
}

ExpressionPtr ExpressionParser::dict() {
  const int line = stream_.take().line;
  DictDisplay display;
  while (!stream_.at_sign("}")) {
    ExpressionPtr key = expression();
    stream_.expect_sign(":");
    display.entries.emplace_back(std::move(key), expression());
    if (!stream_.skip_sign(",")) break;
  }
  stream_.expect_sign("}");
  return make(line, std::move(display));
}

Target ExpressionParser::single_target(bool may_have_attribute) {
  if (stream_.skip_sign("(")) {
    Target inner = target(may_have_attribute);
    stream_.expect_sign(")");
    return inner;
  }
  static constexpr std::array<std::string_view, 6> kConstants{"true", "false", "none",
                                                              "True", "False", "None"};
  for (const auto constant : kConstants) {
    if (stream_.at_name(constant)) stream_.fail("can't assign to '" + std::string(constant) + "'");
  }
  Target target{stream_.expect_any_name(), {}, {}};
  if (may_have_attribute && stream_.skip_sign(".")) target.attribute = stream_.expect_any_name();
  return target;
}

Target ExpressionParser::target(bool may_have_attribute) {
  const Deeper deeper(depth_, stream_);
  Target first = single_target(may_have_attribute);
  if (!stream_.at_sign(",")) return first;
  Target several;
  several.parts.push_back(std::move(first));
  while (stream_.skip_sign(",")) {
    if (stream_.at_name("in") || stream_.at_sign("=") || stream_.at_sign(")")) break;
    several.parts.push_back(single_target(may_have_attribute));
  }
  return several;
}

}  // namespace sangam::jinja
