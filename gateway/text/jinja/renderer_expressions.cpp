// Expressions, and the functions that every template has.
#include "gateway/text/jinja/arguments.hpp"
#include "gateway/text/jinja/methods.hpp"
#include "gateway/text/jinja/python_text.hpp"
#include "gateway/text/jinja/renderer.hpp"

namespace sangam::jinja {
namespace {

bool holds(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::equal:
      return equal(left, right);
    case Comparison::not_equal:
      return !equal(left, right);
    case Comparison::less:
      return less(left, right);
    case Comparison::less_equal:
      return !less(right, left);
    case Comparison::greater:
      return less(right, left);
    case Comparison::greater_equal:
      return !less(left, right);
    case Comparison::in:
      return contains(right, left);
    case Comparison::not_in:
      return !contains(right, left);
  }
  return false;
}

std::optional<std::int64_t> bound(const Value& value) {
  if (value.is<None>()) return std::nullopt;
  if (!require_defined(value).is_integer()) throw TemplateError("slice indices must be integers or None");
  return value.integer();
}

Value range(const CallArguments& arguments) {
  constexpr std::int64_t kRangeLimit = 100'000;  // That of Jinja's sandbox.
  const Parameters parameters("range", arguments, {"start", "stop", "step"});
  const bool only_stop = !parameters.has("stop");
  std::int64_t at = only_stop ? 0 : parameters.integer_or("start", 0);
  const std::int64_t stop = parameters.integer_or(only_stop ? "start" : "stop", 0);
  const std::int64_t step = parameters.integer_or("step", 1);
  if (step == 0) throw TemplateError("range() arg 3 must not be zero");
  List items;
  while (step > 0 ? at < stop : at > stop) {
    if (static_cast<std::int64_t>(items.size()) == kRangeLimit)
      throw TemplateError("range too big, the limit is 100000");
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return items;
}

Dict dict_of(const CallArguments& arguments) {
  Dict dict;
  for (const Value& value : arguments.positional) {
    if (require_defined(value).dict() == nullptr)
      throw TemplateError("dict() needs a mapping, not " + type_name(value));
    for (const auto& [key, item] : value.dict()->entries) dict.set(key, item);
  }
  for (const auto& entry : arguments.keyword) refuse_namespace(entry.second);
  for (const auto& [name, value] : arguments.keyword) dict.set(Value(name), value);
  return dict;
}

Value make_namespace(const CallArguments& arguments) {
  return Value(Value::Variant(std::make_shared<Namespace>(Namespace{dict_of(arguments)})));
}

}  // namespace

void add_builtins(Scope& globals) {
  globals.set("range", Value::callable("range", range));
  globals.set("namespace", Value::callable("namespace", make_namespace));
  globals.set("dict", Value::callable(
                          "dict", [](const CallArguments& arguments) { return Value(dict_of(arguments)); }));
}

Value Renderer::evaluate(const Variable& node) {
  const Value* found = scope_->find(node.name);
  return found != nullptr ? *found : Value::undefined("'" + node.name + "' is undefined");
}

Value Renderer::evaluate(const ListDisplay& node) {
  List items;
  items.reserve(node.items.size());
  for (const auto& item : node.items) items.push_back(value(*item));
  return node.is_tuple ? Value::tuple(std::move(items)) : Value(std::move(items));
}

Value Renderer::evaluate(const DictDisplay& node) {
  Dict dict;
  for (const auto& [key_of, value_of] : node.entries) {
    Value key = value(*key_of);
    if (key.dict() != nullptr || (key.items() != nullptr && !key.is<Tuple>())) {
      throw TemplateError("unhashable type: '" + type_name(key) + "'");
    }
    dict.set(std::move(key), value(*value_of));
  }
  return dict;
}

Value Renderer::evaluate(const AttributeOf& node) {
  return attribute(value(*node.of), node.name);
}

Value Renderer::evaluate(const SubscriptOf& node) {
  const Value of = value(*node.of);
  return subscript(of, value(*node.key));
}

Value Renderer::evaluate(const SliceOf& node) {
  const auto part = [this](const ExpressionPtr& expression) {
    return expression == nullptr ? std::nullopt : bound(value(*expression));
  };
  const Value of = value(*node.of);
  SliceBounds bounds;
  bounds.start = part(node.start);
  bounds.stop = part(node.stop);
  bounds.step = part(node.step).value_or(1);
  return slice(of, bounds);
}

CallArguments Renderer::arguments(const ArgumentList& list) {
  CallArguments given;
  for (const auto& argument : list.positional) given.positional.push_back(value(*argument));
  for (const auto& [name, argument] : list.keyword) given.keyword.emplace_back(name, value(*argument));
  if (list.more_positional != nullptr) {
    for (Value& item : iterate(value(*list.more_positional))) given.positional.push_back(std::move(item));
  }
  if (list.more_keyword == nullptr) return given;
  const Value more = value(*list.more_keyword);
  if (more.dict() == nullptr)
    throw TemplateError("argument after ** must be a mapping, not " + type_name(more));
  for (const auto& [name, item] : more.dict()->entries) given.keyword.emplace_back(to_text(name), item);
  return given;
}

Value Renderer::evaluate(const CallOf& node) {
  // A method is called without making a value of it first.
  if (const auto* member = std::get_if<AttributeOf>(&node.callee->node)) {
    const Value self = value(*member->of);
    if (const Method method = find_method(require_defined(self), member->name))
      return method(self, arguments(node.arguments));
    return call(attribute(self, member->name), arguments(node.arguments));
  }
  const Value callee = value(*node.callee);
  return call(callee, arguments(node.arguments));
}

Value Renderer::evaluate(const Filtered& node) {
  const Value subject = value(*node.subject);
  return node.filter(subject, arguments(node.arguments));
}

Value Renderer::evaluate(const Tested& node) {
  const Value subject = value(*node.subject);
  return node.test(subject, arguments(node.arguments));
}

Value Renderer::evaluate(const Not& node) {
  return !is_true(value(*node.operand));
}

Value Renderer::evaluate(const Negated& node) {
  const Value operand = value(*node.operand);
  const Value negative = negate(operand);
  return node.is_plus ? negate(negative) : negative;
}

Value Renderer::evaluate(const Calculated& node) {
  const Value left = value(*node.left);
  return calculate(node.operation, left, value(*node.right));
}

Value Renderer::evaluate(const Joined& node) {
  std::string text;
  for (const auto& part : node.parts) text += to_text(value(*part));
  return text;
}

Value Renderer::evaluate(const Both& node) {
  Value left = value(*node.left);
  return is_true(left) ? value(*node.right) : left;
}

Value Renderer::evaluate(const Either& node) {
  Value left = value(*node.left);
  return is_true(left) ? left : value(*node.right);
}

Value Renderer::evaluate(const Compared& node) {
  Value left = value(*node.first);
  for (const auto& [comparison, operand] : node.rest) {
    Value right = value(*operand);
    if (!holds(comparison, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Renderer::evaluate(const Chosen& node) {
  if (is_true(value(*node.condition))) return value(*node.then);
  if (node.otherwise != nullptr) return value(*node.otherwise);
  return Value::undefined("the inline if-expression on line " + std::to_string(line_) +
                          " evaluated to false and no else section was defined.");
}

}  // namespace sangam::jinja
