// Membership, iteration, attributes and subscripts.
#include "gateway/text/jinja/operators.hpp"

#include <algorithm>

#include "gateway/text/jinja/methods.hpp"
#include "gateway/text/jinja/python_text.hpp"

namespace sangam::jinja {
namespace {

std::string object_name(const Value& value) {
  return value.is<None>() ? "None" : type_name(value) + " object";
}

Value no_element(const Value& value, const Value& key) {
  if (key.text() != nullptr) {
    return Value::undefined("'" + object_name(value) + "' has no attribute " + to_repr(key));
  }
  return Value::undefined(object_name(value) + " has no element " + to_repr(key));
}

Value loop_attribute(const Loop& loop, const std::string& name) {
  const auto index = static_cast<std::int64_t>(loop.index);
  const auto size = static_cast<std::int64_t>(loop.items->size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return size - index;
  if (name == "revindex0") return size - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == size;
  if (name == "length") return size;
  // Depth counts recursions, of which there are none.
  if (name == "depth") return std::int64_t{1};
  if (name == "depth0") return std::int64_t{0};
  if (name == "previtem") {
    return index > 0 ? (*loop.items)[loop.index - 1] : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < size ? (*loop.items)[loop.index + 1] : Value::undefined("there is no next item");
  }
  return Value::undefined("'LoopContext object' has no attribute '" + name + "'");
}

/// Where a negative index counts from the end; nothing where it is out of range.
std::optional<std::size_t> place(std::int64_t index, std::size_t size) {
  const auto count = static_cast<std::int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return std::nullopt;
  return static_cast<std::size_t>(index);
}

Value element(const Value& value, const Value& key) {
  if (const List* items = value.items()) {
    const auto at = place(key.integer(), items->size());
    return at ? (*items)[*at] : no_element(value, key);
  }
  const std::u32string all = characters(*value.text());
  const auto at = place(key.integer(), all.size());
  return at ? Value(from_characters({&all[*at], 1})) : no_element(value, key);
}

template <class Sequence>
Sequence sliced(const Sequence& all, const SliceBounds& bounds) {
  const auto size = static_cast<std::int64_t>(all.size());
  const bool forward = bounds.step > 0;
  const std::int64_t low = forward ? 0 : -1;
  const std::int64_t high = forward ? size : size - 1;
  const auto clamp = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  const std::int64_t start = bounds.start ? clamp(*bounds.start) : (forward ? low : high);
  const std::int64_t stop = bounds.stop ? clamp(*bounds.stop) : (forward ? high : low);
  Sequence out;
  // Steps beyond the length would overflow the sum and take nothing anyway.
  const std::int64_t step = std::clamp(bounds.step, -size - 1, size + 1);
  for (std::int64_t at = start; forward ? at < stop : at > stop; at += step) {
    out.push_back(all[static_cast<std::size_t>(at)]);
  }
  return out;
}

}  // namespace

bool contains(const Value& container, const Value& item) {
  if (const std::string* text = container.text()) {
    const std::string* part = item.text();
    if (part == nullptr) {
      throw TemplateError("'in <string>' requires string as left operand, not " + type_name(item));
    }
    return text->find(*part) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) return dict->find(item) != nullptr;
  const List items = iterate(container);
  return std::any_of(items.begin(), items.end(), [&item](const Value& other) { return equal(other, item); });
}

List iterate(const Value& value) {
  if (const List* items = value.items()) return *items;
  if (value.is<Undefined>()) return {};
  List out;
  if (const Dict* dict = value.dict()) {
    for (const auto& entry : dict->entries) out.push_back(entry.first);
    return out;
  }
  if (const std::string* text = value.text()) {
    for (const char32_t c : characters(*text)) out.emplace_back(from_characters({&c, 1}));
    return out;
  }
  throw TemplateError("'" + type_name(value) + "' object is not iterable");
}

std::int64_t length(const Value& value) {
  if (value.is<Undefined>()) return 0;
  if (const std::string* text = value.text()) return character_count(*text);
  if (const List* items = value.items()) return static_cast<std::int64_t>(items->size());
  if (const Dict* dict = value.dict()) return static_cast<std::int64_t>(dict->entries.size());
  if (const Loop* loop = value.loop()) return static_cast<std::int64_t>(loop->items->size());
  throw TemplateError("object of type '" + type_name(value) + "' has no len()");
}

Value attribute(const Value& value, const std::string& name) {
  require_defined(value);
  if (const Method method = find_method(value, name)) {
    return Value::callable(
        name, [method, value](const CallArguments& arguments) { return method(value, arguments); });
  }
  if (const Loop* loop = value.loop()) return loop_attribute(*loop, name);
  const Dict* dict = value.name_space() != nullptr ? &value.name_space()->attributes : value.dict();
  const Value* found = dict == nullptr ? nullptr : dict->find(std::string_view(name));
  return found != nullptr ? *found : no_element(value, name);
}

Value subscript(const Value& value, const Value& key) {
  require_defined(value);
  if (const Dict* dict = value.dict()) {
    if (const Value* found = dict->find(key)) return *found;
  }
  if (key.text() != nullptr) return attribute(value, *key.text());
  if ((value.items() != nullptr || value.text() != nullptr) && key.is_integer()) return element(value, key);
  return no_element(value, key);
}

Value slice(const Value& value, const SliceBounds& bounds) {
  require_defined(value);
  if (bounds.step == 0) throw TemplateError("slice step cannot be zero");
  if (const std::string* text = value.text()) return from_characters(sliced(characters(*text), bounds));
  if (const List* items = value.items()) {
    return value.is<Tuple>() ? Value::tuple(sliced(*items, bounds)) : Value(sliced(*items, bounds));
  }
  return Value::undefined(object_name(value) + " cannot be sliced");
}

Value call(const Value& callee, const CallArguments& arguments) {
  require_defined(callee);
  if (const Callable* callable = callee.callable()) return callable->call(arguments);
  throw TemplateError("'" + type_name(callee) + "' object is not callable");
}

}  // namespace sangam::jinja
