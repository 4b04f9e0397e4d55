// Running a template: statements write, expressions give values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/text/jinja/ast.hpp"
#include "gateway/text/jinja/scope.hpp"

namespace sangam::jinja {

/// Used once. Throws TemplateError; `line` then says where.
class Renderer {
 public:
  /// `globals` are the variables and functions that the template starts with.
  explicit Renderer(std::shared_ptr<Scope> globals);
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  [[nodiscard]] std::string render(const Block& block);
  [[nodiscard]] int line() const { return line_; }

 private:
  enum class Flow { next, leave_loop, next_item };
  class Inner;

  Flow run(const Block& block);
  Flow run_in(std::shared_ptr<Scope> scope, const Block& block);
  Flow execute(const Literally& node);
  Flow execute(const Printed& node);
  Flow execute(const If& node);
  Flow execute(const For& node);
  Flow execute(const Set& node);
  Flow execute(const SetBlock& node);
  Flow execute(const FilterBlock& node);
  Flow execute(const Macro& node);
  Flow execute(const CallBlock& node);
  Flow execute(const With& node);
  Flow execute(const Scoped& node);
  Flow execute(const Break&) { return Flow::leave_loop; }
  Flow execute(const Continue&) { return Flow::next_item; }

  Value value(const Expression& expression);
  Value evaluate(const Literal& node) { return node.value; }
  Value evaluate(const Variable& node);
  Value evaluate(const ListDisplay& node);
  Value evaluate(const DictDisplay& node);
  Value evaluate(const AttributeOf& node);
  Value evaluate(const SubscriptOf& node);
  Value evaluate(const SliceOf& node);
  Value evaluate(const CallOf& node);
  Value evaluate(const Captured&) { return captured_; }
  Value evaluate(const Filtered& node);
  Value evaluate(const Tested& node);
  Value evaluate(const Not& node);
  Value evaluate(const Negated& node);
  Value evaluate(const Calculated& node);
  Value evaluate(const Joined& node);
  Value evaluate(const Both& node);
  Value evaluate(const Either& node);
  Value evaluate(const Compared& node);
  Value evaluate(const Chosen& node);

  [[nodiscard]] CallArguments arguments(const ArgumentList& list);
  [[nodiscard]] List loop_items(const For& node);
  void assign(const Target& target, const Value& value);
  /// The text that a block writes, in a scope of its own.
  [[nodiscard]] std::string capture(const Block& block, std::shared_ptr<Scope> scope);
  [[nodiscard]] Value macro(std::shared_ptr<const MacroDefinition> definition);
  [[nodiscard]] Value call_macro(const MacroDefinition& definition, std::shared_ptr<Scope> outer,
                                 const CallArguments& given);
  void write(std::string_view text);
  void count_step();

  std::shared_ptr<Scope> scope_;
  std::string out_;
  Value captured_;
  int line_ = 1;
  int depth_ = 0;
  std::int64_t steps_ = 0;
};

/// `namespace`, `range` and `dict`.
void add_builtins(Scope& globals);

}  // namespace sangam::jinja
