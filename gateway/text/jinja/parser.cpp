// Statements; expressions are the ExpressionParser's.
#include "gateway/text/jinja/parser.hpp"

#include <initializer_list>
#include <map>

#include "gateway/text/jinja/expression_parser.hpp"
#include "gateway/text/jinja/syntax_error.hpp"

namespace sangam::jinja {
namespace {

using Kind = Token::Kind;

constexpr int kDepthLimit = 100;  // Of statements within each other.

class Parser {
 public:
  explicit Parser(std::string_view source) : stream_(tokenize(source)), expressions_(stream_) {}

  Block run() {
    Block block = body({});
    if (!stream_.at(Kind::end)) stream_.fail_unexpected("the end of the template");
    return block;
  }

 private:
  using Statements = Statement (Parser::*)();

  /// Up to a tag with one of the names in `ends`, of which the stream then stands at the name.
  Block body(std::initializer_list<std::string_view> ends) {
    if (++depth_ > kDepthLimit) stream_.fail("statements nest too deep");
    Block block;
    while (!stream_.at(Kind::end)) {
      const int line = stream_.line();
      if (stream_.at(Kind::text)) {
        block.push_back({line, Literally{stream_.take().text}});
      } else if (stream_.at(Kind::variable_begin)) {
        stream_.take();
        block.push_back({line, Printed{expressions_.expressions()}});
        stream_.expect(Kind::variable_end);
      } else {
        stream_.expect(Kind::block_begin);
        for (const auto end : ends) {
          if (stream_.at_name(end)) return --depth_, std::move(block);
        }
        block.push_back(statement());
        stream_.expect(Kind::block_end);
      }
    }
    if (ends.size() > 0) stream_.fail_unexpected("{% " + std::string(*(ends.end() - 1)) + " %}");
    --depth_;
    return block;
  }

  /// The body of a tag that ends with `end` and nothing else.
  Block whole_body(std::string_view end) {
    stream_.expect(Kind::block_end);
    Block block = body({end});
    stream_.expect_name(end);
    return block;
  }

  Statement statement() {
    static const std::map<std::string, Statements, std::less<>> kStatements{
        {"if", &Parser::if_statement},       {"for", &Parser::for_statement},
        {"set", &Parser::set_statement},     {"macro", &Parser::macro_statement},
        {"call", &Parser::call_statement},   {"filter", &Parser::filter_statement},
        {"with", &Parser::with_statement},   {"generation", &Parser::generation_statement},
        {"break", &Parser::break_statement}, {"continue", &Parser::continue_statement},
    };
    const int line = stream_.line();
    const std::string name = stream_.at(Kind::name) ? stream_.current().text : std::string();
    const auto found = kStatements.find(name);
    if (found == kStatements.end()) stream_.fail("Encountered unknown tag '" + name + "'.");
    stream_.take();
    Statement statement = (this->*found->second)();
    statement.line = line;
    return statement;
  }

  Statement if_statement() {
    If node;
    while (true) {
      ExpressionPtr condition = expressions_.expressions_without_condition();
      stream_.expect(Kind::block_end);
      node.branches.emplace_back(std::move(condition), body({"elif", "else", "endif"}));
      if (!stream_.skip_name("elif")) break;
    }
    if (stream_.skip_name("else")) {
      stream_.expect(Kind::block_end);
      node.otherwise = body({"endif"});
    }
    stream_.expect_name("endif");
    return {0, std::move(node)};
  }

  Statement for_statement() {
    For node;
    node.target = expressions_.target(false);
    stream_.expect_name("in");
    node.items = expressions_.expressions_without_condition();
    if (stream_.skip_name("if")) node.condition = expressions_.expression();
    if (stream_.at_name("recursive")) stream_.fail("recursive loops are not supported");
    stream_.expect(Kind::block_end);
    ++loops_;
    node.body = body({"else", "endfor"});
    --loops_;
    if (stream_.skip_name("else")) {
      stream_.expect(Kind::block_end);
      node.otherwise = body({"endfor"});
    }
    stream_.expect_name("endfor");
    return {0, std::move(node)};
  }

  Statement set_statement() {
    Target target = expressions_.target(true);
    if (stream_.skip_sign("=")) return {0, Set{std::move(target), expressions_.expressions()}};
    const int line = stream_.line();
    ExpressionPtr filter = stream_.skip_sign("|")
                               ? expressions_.filters_of_block()
                               : std::make_unique<const Expression>(Expression{line, Captured{}});
    return {0, SetBlock{std::move(target), std::move(filter), whole_body("endset")}};
  }

  std::vector<Parameter> signature() {
    std::vector<Parameter> parameters;
    stream_.expect_sign("(");
    while (!stream_.at_sign(")")) {
      Parameter parameter{stream_.expect_any_name(), nullptr};
      if (stream_.skip_sign("=")) {
        parameter.otherwise = expressions_.expression();
      } else if (!parameters.empty() && parameters.back().otherwise != nullptr) {
        stream_.fail("non-default argument follows default argument");
      }
      parameters.push_back(std::move(parameter));
      if (!stream_.skip_sign(",")) break;
    }
    stream_.expect_sign(")");
    return parameters;
  }

  /// Loops around a macro are not around its body.
  std::shared_ptr<const MacroDefinition> definition(std::string name, std::vector<Parameter> parameters,
                                                    std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    auto definition = std::make_shared<const MacroDefinition>(
        MacroDefinition{std::move(name), std::move(parameters), whole_body(end)});
    loops_ = loops;
    return definition;
  }

  Statement macro_statement() {
    std::string name = stream_.expect_any_name();
    std::vector<Parameter> parameters = signature();
    return {0, Macro{definition(std::move(name), std::move(parameters), "endmacro")}};
  }

  Statement call_statement() {
    std::vector<Parameter> parameters = stream_.at_sign("(") ? signature() : std::vector<Parameter>();
    ExpressionPtr call = expressions_.expression();
    if (!std::holds_alternative<CallOf>(call->node)) stream_.fail("expected call");
    auto caller = definition("caller", std::move(parameters), "endcall");
    return {0, CallBlock{std::move(caller), std::move(call)}};
  }

  Statement filter_statement() {
    ExpressionPtr filter = expressions_.filters_of_block();
    return {0, FilterBlock{std::move(filter), whole_body("endfilter")}};
  }

  Statement with_statement() {
    With node;
    while (!stream_.at(Kind::block_end)) {
      Target target = expressions_.target(false);
      stream_.expect_sign("=");
      node.variables.emplace_back(std::move(target), expressions_.expression());
      if (!stream_.skip_sign(",")) break;
    }
    node.body = whole_body("endwith");
    return {0, std::move(node)};
  }

  Statement generation_statement() { return {0, Scoped{whole_body("endgeneration")}}; }

  Statement break_statement() {
    if (loops_ == 0) stream_.fail("'break' outside loop");
    return {0, Break{}};
  }

  Statement continue_statement() {
    if (loops_ == 0) stream_.fail("'continue' outside loop");
    return {0, Continue{}};
  }

  TokenCursor stream_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;  ///< Loops around the statement.
};

}  // namespace

Block parse_template(std::string_view source) {
  return Parser(source).run();
}

}  // namespace sangam::jinja
