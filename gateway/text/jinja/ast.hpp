// A parsed template: expressions and statements, as variants over their kinds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gateway/text/jinja/filters.hpp"
#include "gateway/text/jinja/operators.hpp"
#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;
struct Statement;
using Block = std::vector<Statement>;

struct ArgumentList {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keyword;
  ExpressionPtr more_positional;  ///< `*x`, or null.
  ExpressionPtr more_keyword;     ///< `**x`, or null.
};

struct Literal {
  Value value;
};
struct Variable {
  std::string name;
};
struct ListDisplay {
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
};
struct DictDisplay {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct AttributeOf {
  ExpressionPtr of;
  std::string name;
};
struct SubscriptOf {
  ExpressionPtr of;
  ExpressionPtr key;
};
struct SliceOf {
  ExpressionPtr of;
  ExpressionPtr start, stop, step;  ///< Null where left out.
};
struct CallOf {
  ExpressionPtr callee;
  ArgumentList arguments;
};
/// What a filter on a whole block is applied to.
struct Captured {};
struct Filtered {
  ExpressionPtr subject;
  Filter filter = nullptr;
  ArgumentList arguments;
};
struct Tested {
  ExpressionPtr subject;
  Test test = nullptr;
  ArgumentList arguments;
};
struct Not {
  ExpressionPtr operand;
};
struct Negated {
  ExpressionPtr operand;
  bool is_plus = false;
};
struct Calculated {
  Arithmetic operation = Arithmetic::add;
  ExpressionPtr left, right;
};
struct Joined {
  std::vector<ExpressionPtr> parts;
};
struct Both {
  ExpressionPtr left, right;
};
struct Either {
  ExpressionPtr left, right;
};
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
struct Compared {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;  ///< A chain: each is compared with the one before.
};
struct Chosen {
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;  ///< Null where left out.
};

struct Expression {
  int line = 0;
  std::variant<Literal, Variable, ListDisplay, DictDisplay, AttributeOf, SubscriptOf, SliceOf, CallOf,
               Captured, Filtered, Tested, Not, Negated, Calculated, Joined, Both, Either, Compared, Chosen>
      node;
};

/// What may be assigned to: a name, `namespace.attribute`, or several of them.
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> parts;  ///< Not empty: the others are unused, and a sequence is taken apart.
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  ///< Null where an argument is not given: undefined.
};

struct Literally {
  std::string text;
};
struct Printed {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block otherwise;
};
struct For {
  Target target;
  ExpressionPtr items;
  ExpressionPtr condition;  ///< Null where left out.
  Block body;
  Block otherwise;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  ///< Over Captured.
  Block body;
};
struct FilterBlock {
  ExpressionPtr filter;  ///< Over Captured.
  Block body;
};
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
};
struct Macro {
  std::shared_ptr<const MacroDefinition> definition;
};
struct CallBlock {
  std::shared_ptr<const MacroDefinition> caller;
  ExpressionPtr call;  ///< Always a CallOf.
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> variables;
  Block body;
};
/// {% generation %}: only a scope here.
struct Scoped {
  Block body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line = 0;
  std::variant<Literally, Printed, If, For, Set, SetBlock, FilterBlock, Macro, CallBlock, With, Scoped, Break,
               Continue>
      node;
};

}  // namespace sangam::jinja
