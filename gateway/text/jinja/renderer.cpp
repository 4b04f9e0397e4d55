// Statements.
#include "gateway/text/jinja/renderer.hpp"

#include <algorithm>

#include "gateway/text/jinja/python_text.hpp"

namespace sangam::jinja {
namespace {

// A prompt fills neither; a template that does would take the server with it.
constexpr std::size_t kOutputLimit = 64 << 20;
constexpr std::int64_t kStepLimit = 5'000'000;
constexpr int kDepthLimit = 1000;  // Of blocks, expressions and macros within each other.

}  // namespace

/// A scope, as long as this lives.
class Renderer::Inner {
 public:
  Inner(Renderer& renderer, std::shared_ptr<Scope> scope)
      : renderer_(renderer), outer_(std::exchange(renderer.scope_, std::move(scope))) {}
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;
  ~Inner() { renderer_.scope_ = std::move(outer_); }

 private:
  Renderer& renderer_;
  std::shared_ptr<Scope> outer_;
};

Renderer::Renderer(std::shared_ptr<Scope> globals) : scope_(std::make_shared<Scope>(std::move(globals))) {}
Renderer::~Renderer() = default;

std::string Renderer::render(const Block& block) {
  run(block);
  return std::move(out_);
}

void Renderer::count_step() {
  if (++steps_ > kStepLimit) throw TemplateError("the template runs too long");
}

void Renderer::write(std::string_view text) {
  if (out_.size() + text.size() > kOutputLimit) throw TemplateError("the template writes too much");
  out_ += text;
}

Renderer::Flow Renderer::run(const Block& block) {
  if (depth_ > kDepthLimit) throw TemplateError("blocks or macros nest too deep");
  ++depth_;
  Flow flow = Flow::next;
  for (const Statement& statement : block) {
    count_step();
    line_ = statement.line;
    flow = std::visit([this](const auto& node) { return execute(node); }, statement.node);
    if (flow != Flow::next) break;
  }
  --depth_;
  return flow;
}

Renderer::Flow Renderer::run_in(std::shared_ptr<Scope> scope, const Block& block) {
  const Inner inner(*this, std::move(scope));
  return run(block);
}

std::string Renderer::capture(const Block& block, std::shared_ptr<Scope> scope) {
  std::string outer = std::exchange(out_, {});
  run_in(std::move(scope), block);
  return std::exchange(out_, std::move(outer));
}

Renderer::Flow Renderer::execute(const Literally& node) {
  write(node.text);
  return Flow::next;
}

Renderer::Flow Renderer::execute(const Printed& node) {
  const Value printed = value(*node.value);
  const std::string* text = printed.text();
  write(text != nullptr ? *text : to_text(printed));
  return Flow::next;
}

Renderer::Flow Renderer::execute(const If& node) {
  for (const auto& [condition, block] : node.branches) {
    if (is_true(value(*condition))) return run(block);
  }
  return run(node.otherwise);
}

/// The condition sees the item, but not the loop.
List Renderer::loop_items(const For& node) {
  List items = iterate(value(*node.items));
  if (node.condition == nullptr) return items;
  List kept;
  for (Value& item : items) {
    const Inner inner(*this, std::make_shared<Scope>(scope_));
    assign(node.target, item);
    if (is_true(value(*node.condition))) kept.push_back(std::move(item));
  }
  return kept;
}

Renderer::Flow Renderer::execute(const For& node) {
  const auto items = std::make_shared<const List>(loop_items(node));
  for (std::size_t i = 0; i < items->size(); ++i) {
    count_step();
    auto scope = std::make_shared<Scope>(scope_);
    scope->set("loop", Value(Value::Variant(std::make_shared<const Loop>(Loop{items, i}))));
    const Inner inner(*this, std::move(scope));
    assign(node.target, (*items)[i]);
    if (run(node.body) == Flow::leave_loop) break;
  }
  return items->empty() ? run(node.otherwise) : Flow::next;
}

void Renderer::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const List items = iterate(require_defined(value));
    if (items.size() != target.parts.size()) {
      throw TemplateError("cannot unpack " + std::to_string(items.size()) + " values into " +
                          std::to_string(target.parts.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) return scope_->set(target.name, value);
  const Value* holder = scope_->find(target.name);
  if (holder == nullptr || holder->name_space() == nullptr) {
    throw TemplateError("cannot assign attribute on non-namespace object");
  }
  refuse_namespace(value);
  holder->name_space()->attributes.set(target.attribute, value);
}

Renderer::Flow Renderer::execute(const Set& node) {
  assign(node.target, value(*node.value));
  return Flow::next;
}

Renderer::Flow Renderer::execute(const SetBlock& node) {
  captured_ = capture(node.body, std::make_shared<Scope>(scope_));
  assign(node.target, value(*node.filter));
  return Flow::next;
}

Renderer::Flow Renderer::execute(const FilterBlock& node) {
  captured_ = capture(node.body, std::make_shared<Scope>(scope_));
  write(to_text(value(*node.filter)));
  return Flow::next;
}

Renderer::Flow Renderer::execute(const With& node) {
  auto scope = std::make_shared<Scope>(scope_);
  List values;
  for (const auto& variable : node.variables) values.push_back(value(*variable.second));
  const Inner inner(*this, std::move(scope));
  for (std::size_t i = 0; i < values.size(); ++i) assign(node.variables[i].first, values[i]);
  return run(node.body);
}

Renderer::Flow Renderer::execute(const Scoped& node) {
  return run_in(std::make_shared<Scope>(scope_), node.body);
}

Renderer::Flow Renderer::execute(const Macro& node) {
  scope_->set(node.definition->name, macro(node.definition));
  return Flow::next;
}

Renderer::Flow Renderer::execute(const CallBlock& node) {
  const auto& call_of = std::get<CallOf>(node.call->node);
  CallArguments given = arguments(call_of.arguments);
  given.keyword.emplace_back("caller", macro(node.caller));
  write(to_text(call(value(*call_of.callee), given)));
  return Flow::next;
}

/// A macro sees the scope around its definition, not the one around its call.
Value Renderer::macro(std::shared_ptr<const MacroDefinition> definition) {
  return Value::callable(
      definition->name, [this, definition, weak = std::weak_ptr<Scope>(scope_)](const CallArguments& given) {
        const std::shared_ptr<Scope> outer = weak.lock();
        // Held weakly: the scope holds the macro.
        if (outer == nullptr)
          throw TemplateError("the macro " + definition->name + " is called outside of its block");
        return call_macro(*definition, outer, given);
      });
}

Value Renderer::call_macro(const MacroDefinition& definition, std::shared_ptr<Scope> outer,
                           const CallArguments& given) {
  auto scope = std::make_shared<Scope>(std::move(outer));
  const auto& parameters = definition.parameters;
  if (given.positional.size() > parameters.size()) {
    throw TemplateError("macro '" + definition.name + "' takes not more than " +
                        std::to_string(parameters.size()) + " argument(s)");
  }
  for (const auto& [name, argument] : given.keyword) {
    const bool known = std::any_of(parameters.begin(), parameters.end(),
                                   [&](auto& parameter) { return parameter.name == name; });
    if (!known && name != "caller") {
      throw TemplateError("macro '" + definition.name + "' takes no keyword argument '" + name + "'");
    }
    scope->set(name, argument);
  }
  const int line = line_;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (i < given.positional.size()) {
      scope->set(parameters[i].name, given.positional[i]);
      continue;
    }
    const auto is_given = [&](const auto& argument) { return argument.first == parameters[i].name; };
    if (std::any_of(given.keyword.begin(), given.keyword.end(), is_given)) continue;
    const Inner inner(*this, scope);
    scope->set(parameters[i].name,
               parameters[i].otherwise != nullptr
                   ? value(*parameters[i].otherwise)
                   : Value::undefined("parameter '" + parameters[i].name + "' was not provided"));
  }
  std::string text = capture(definition.body, scope);
  line_ = line;
  return text;
}

Value Renderer::value(const Expression& expression) {
  if (depth_ > kDepthLimit) throw TemplateError("expressions nest too deep");
  count_step();
  line_ = expression.line;
  ++depth_;
  Value result = std::visit([this](const auto& node) { return evaluate(node); }, expression.node);
  --depth_;
  return result;
}

}  // namespace sangam::jinja
