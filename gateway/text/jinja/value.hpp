// The values of a template: Python's, as far as templates see them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sangam::jinja {

/// What goes wrong in a template. Thrown within this folder, caught by ChatTemplate, which adds the line.
struct TemplateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Value;
using List = std::vector<Value>;

/// A name, key or attribute that is not there: prints as nothing, is false, and is an error in most uses.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {
  bool operator==(const None&) const = default;
};
using Text = std::shared_ptr<const std::string>;
struct Tuple {
  std::shared_ptr<const List> items;
};
struct Dict;
struct Namespace;
struct Loop;

struct CallArguments {
  List positional;
  std::vector<std::pair<std::string, Value>> keyword;
};
struct Callable {
  std::string name;
  std::function<Value(const CallArguments&)> call;
};

/// Values are shared and never change, except a namespace.
class Value {
 public:
  using Variant = std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
                               Tuple, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
                               std::shared_ptr<const Loop>, std::shared_ptr<const Callable>>;

  Value() : kind_(None{}) {}
  // What holds values refuses to nest them deeper than templates and their inputs ever do.
  Value(bool truth) : kind_(truth) {}                                                       // NOLINT: a value
  Value(std::int64_t number) : kind_(number) {}                                             // NOLINT
  Value(double number) : kind_(number) {}                                                   // NOLINT
  Value(std::string text) : kind_(std::make_shared<const std::string>(std::move(text))) {}  // NOLINT
  Value(std::string_view text) : Value(std::string(text)) {}                                // NOLINT
  Value(const char* text) : Value(std::string(text)) {}                                     // NOLINT
  Value(List items);                                                                        // NOLINT
  Value(Dict dict);                                                                         // NOLINT
  Value(Variant kind) : kind_(std::move(kind)) {}                                           // NOLINT

  [[nodiscard]] static Value undefined(std::string why) {
    return Value(Variant(Undefined{std::make_shared<const std::string>(std::move(why))}));
  }
  [[nodiscard]] static Value tuple(List items);
  [[nodiscard]] static Value callable(std::string name, std::function<Value(const CallArguments&)> call) {
    return Value(Variant(std::make_shared<const Callable>(Callable{std::move(name), std::move(call)})));
  }

  [[nodiscard]] const Variant& kind() const { return kind_; }
  template <class Kind>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<Kind>(kind_);
  }

  // Views of what it is; null where it is something else.
  [[nodiscard]] const std::string* text() const;
  [[nodiscard]] const List* items() const;  ///< Of a list or a tuple.
  [[nodiscard]] const Dict* dict() const;
  [[nodiscard]] Namespace* name_space() const;
  [[nodiscard]] const Loop* loop() const;
  [[nodiscard]] const Callable* callable() const;

  [[nodiscard]] bool is_number() const { return is<bool>() || is<std::int64_t>() || is<double>(); }
  [[nodiscard]] bool is_integer() const { return is<bool>() || is<std::int64_t>(); }
  [[nodiscard]] std::int64_t integer() const;  ///< Of an integer or a truth value.
  [[nodiscard]] double real() const;           ///< Of any number.

 private:
  static constexpr std::uint16_t kNestingLimit = 200;
  void nest(const Value& item);

  Variant kind_;
  std::uint16_t nesting_ = 0;  ///< How deep its items hold items; bounded, so that recursion over it is.
};

/// In the order of insertion. Templates' dictionaries are small, so that looking one by one is fast.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;

  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* find(std::string_view key) const;
  void set(Value key, Value value);
};

struct Namespace {
  Dict attributes;
};

/// The variable `loop` within a for.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
};

/// Namespaces change, so that one that held itself would never be freed: nothing holds a namespace but a
/// name.
void refuse_namespace(const Value& value);
[[nodiscard]] bool is_true(const Value& value);
/// Python's ==.
[[nodiscard]] bool equal(const Value& a, const Value& b);
/// Python's <; refuses kinds that have no order.
[[nodiscard]] bool less(const Value& a, const Value& b);
/// Python's name of the type: str, int, list ...
[[nodiscard]] std::string type_name(const Value& value);
/// Throws if the value is undefined, and says why it is.
const Value& require_defined(const Value& value);

}  // namespace sangam::jinja
