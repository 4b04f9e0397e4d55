// Truth, equality and order as Python has them.
#include "gateway/text/jinja/value.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam::jinja {
namespace {

template <class Pointee>
Pointee* pointer_in(const Value::Variant& kind) {
  const auto* held = std::get_if<std::shared_ptr<Pointee>>(&kind);
  return held == nullptr ? nullptr : held->get();
}

bool equal_lists(const List& a, const List& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) { return equal(x, y); });
}

bool equal_dicts(const Dict& a, const Dict& b) {
  return a.entries.size() == b.entries.size() &&
         std::all_of(a.entries.begin(), a.entries.end(), [&b](auto& entry) {
           const Value* other = b.find(entry.first);
           return other != nullptr && equal(entry.second, *other);
         });
}

}  // namespace

Value::Value(List items) {
  for (const Value& item : items) nest(item);
  kind_ = std::make_shared<const List>(std::move(items));
}

Value Value::tuple(List items) {
  Value tuple;
  for (const Value& item : items) tuple.nest(item);
  tuple.kind_ = Tuple{std::make_shared<const List>(std::move(items))};
  return tuple;
}

Value::Value(Dict dict) {
  for (const auto& entry : dict.entries) nest(entry.first), nest(entry.second);
  kind_ = std::make_shared<const Dict>(std::move(dict));
}

void Value::nest(const Value& item) {
  refuse_namespace(item);
  if (item.nesting_ >= kNestingLimit) throw TemplateError("values nest too deep");
  nesting_ = std::max<std::uint16_t>(nesting_, item.nesting_ + 1);
}

const std::string* Value::text() const {
  return pointer_in<const std::string>(kind_);
}

const List* Value::items() const {
  if (const auto* tuple = std::get_if<Tuple>(&kind_)) return tuple->items.get();
  return pointer_in<const List>(kind_);
}

const Dict* Value::dict() const {
  return pointer_in<const Dict>(kind_);
}
Namespace* Value::name_space() const {
  return pointer_in<Namespace>(kind_);
}
const Loop* Value::loop() const {
  return pointer_in<const Loop>(kind_);
}
const Callable* Value::callable() const {
  return pointer_in<const Callable>(kind_);
}

std::int64_t Value::integer() const {
  if (const auto* truth = std::get_if<bool>(&kind_)) return *truth ? 1 : 0;
  SANGAM_ASSERT(is<std::int64_t>(), type_name(*this));
  return std::get<std::int64_t>(kind_);
}

double Value::real() const {
  return is<double>() ? std::get<double>(kind_) : static_cast<double>(integer());
}

const Value* Dict::find(const Value& key) const {
  for (const auto& entry : entries) {
    if (equal(entry.first, key)) return &entry.second;
  }
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& entry : entries) {
    const std::string* text = entry.first.text();
    if (text != nullptr && *text == key) return &entry.second;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  for (auto& entry : entries) {
    if (!equal(entry.first, key)) continue;
    entry.second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
}

void refuse_namespace(const Value& value) {
  if (value.name_space() != nullptr) throw TemplateError("a namespace cannot be held by another value");
}

bool is_true(const Value& value) {
  if (value.is<Undefined>() || value.is<None>()) return false;
  if (value.is<double>()) return value.real() != 0;
  if (value.is_integer()) return value.integer() != 0;
  if (const std::string* text = value.text()) return !text->empty();
  if (const List* items = value.items()) return !items->empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  return true;
}

bool equal(const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.real() == b.real();
  if (a.kind().index() != b.kind().index()) return false;
  if (a.text() != nullptr) return *a.text() == *b.text();
  if (a.items() != nullptr) return equal_lists(*a.items(), *b.items());
  if (a.dict() != nullptr) return equal_dicts(*a.dict(), *b.dict());
  if (a.is<None>() || a.is<Undefined>()) return true;
  return a.name_space() == b.name_space() && a.loop() == b.loop() && a.callable() == b.callable();
}

bool less(const Value& a, const Value& b) {
  require_defined(a), require_defined(b);
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.real() < b.real();
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() < *b.text();
  if (a.items() != nullptr && b.items() != nullptr && a.kind().index() == b.kind().index()) {
    const List& x = *a.items();
    const List& y = *b.items();
    const auto [i, j] = std::mismatch(x.begin(), x.end(), y.begin(), y.end(), equal);
    return i == x.end() ? j != y.end() : j != y.end() && less(*i, *j);
  }
  throw TemplateError("'<' not supported between instances of '" + type_name(a) + "' and '" + type_name(b) +
                      "'");
}

std::string type_name(const Value& value) {
  static constexpr const char* kNames[] = {"Undefined", "NoneType",  "bool",        "int",
                                           "float",     "str",       "list",        "tuple",
                                           "dict",      "Namespace", "LoopContext", "function"};
  static_assert(std::size(kNames) == std::variant_size_v<Value::Variant>);
  return kNames[value.kind().index()];
}

const Value& require_defined(const Value& value) {
  if (const auto* undefined = std::get_if<Undefined>(&value.kind())) throw TemplateError(*undefined->why);
  return value;
}

}  // namespace sangam::jinja
