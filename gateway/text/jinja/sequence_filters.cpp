// Filters on lists and dictionaries.
#include <algorithm>
#include <charconv>

#include "gateway/text/jinja/arguments.hpp"
#include "gateway/text/jinja/operators.hpp"
#include "gateway/text/jinja/python_text.hpp"
#include "gateway/text/jinja/text_filters.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::jinja {
namespace {

/// `a.b.0` of each item; steps that are numbers are indices.
Value dotted(const Value& item, const Value& path) {
  if (path.is_integer()) return subscript(item, path);
  Value value = item;
  std::string_view rest = *path.text();
  while (true) {
    const std::string name(rest.substr(0, rest.find('.')));
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index = error == std::errc() && end == name.data() + name.size();
    value = subscript(value, is_index ? Value(index) : Value(name));
    if (name.size() == rest.size()) return value;
    rest.remove_prefix(name.size() + 1);
  }
}

bool is_path(const Value& value) {
  return value.text() != nullptr || value.is_integer();
}

Value attribute_or_self(const Value& item, const Value& path) {
  return is_path(path) ? dotted(item, path) : item;
}

/// What comparisons see of a string where case does not matter.
Value folded(Value value, bool case_sensitive) {
  if (case_sensitive || value.text() == nullptr) return value;
  return text::to_lower(*value.text());
}

Value first(const Value& subject, const CallArguments&) {
  const List items = iterate(subject);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(const Value& subject, const CallArguments&) {
  const List items = iterate(subject);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value count(const Value& subject, const CallArguments&) {
  return length(subject);
}
Value list(const Value& subject, const CallArguments&) {
  return iterate(subject);
}

Value items(const Value& subject, const CallArguments&) {
  if (subject.is<Undefined>()) return List();
  if (subject.dict() == nullptr) throw TemplateError("Can only get item pairs from a mapping.");
  List pairs;
  for (const auto& [key, value] : subject.dict()->entries) pairs.push_back(Value::tuple({key, value}));
  return pairs;
}

Value join(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("join", arguments, {"d", "attribute"});
  const std::string separator = to_text(parameters.value_or("d", ""));
  const Value path = parameters.value_or("attribute", Value());
  std::string out;
  bool is_first = true;
  for (const Value& item : iterate(subject)) {
    out += (is_first ? "" : separator) + to_text(attribute_or_self(item, path));
    is_first = false;
  }
  return out;
}

Value reverse(const Value& subject, const CallArguments&) {
  if (subject.text() != nullptr) return slice(subject, {std::nullopt, std::nullopt, -1});
  List items = iterate(subject);
  std::reverse(items.begin(), items.end());
  return items;
}

void sort_by(List& items, const Value& path, bool case_sensitive, bool descending) {
  const auto key = [&](const Value& item) { return folded(attribute_or_self(item, path), case_sensitive); };
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    return descending ? less(key(b), key(a)) : less(key(a), key(b));
  });
}

Value sort(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  List items = iterate(subject);
  sort_by(items, parameters.value_or("attribute", Value()), parameters.truth_or("case_sensitive", false),
          parameters.truth_or("reverse", false));
  return items;
}

Value dictsort(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = to_text(parameters.value_or("by", "key"));
  if (by != "key" && by != "value") throw TemplateError("You can only sort by either \"key\" or \"value\"");
  List pairs = *items(subject, {}).items();
  sort_by(pairs, Value(std::int64_t{by == "key" ? 0 : 1}), parameters.truth_or("case_sensitive", false),
          parameters.truth_or("reverse", false));
  return pairs;
}

Value unique(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("unique", arguments, {"case_sensitive", "attribute"});
  const Value path = parameters.value_or("attribute", Value());
  List seen;
  List out;
  for (const Value& item : iterate(subject)) {
    Value key = folded(attribute_or_self(item, path), parameters.truth_or("case_sensitive", false));
    if (std::any_of(seen.begin(), seen.end(), [&key](const Value& other) { return equal(key, other); }))
      continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return out;
}

template <bool wants_less>
Value extreme(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters(wants_less ? "min" : "max", arguments, {"case_sensitive", "attribute"});
  const Value path = parameters.value_or("attribute", Value());
  const bool exact = parameters.truth_or("case_sensitive", false);
  const List items = iterate(subject);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Value* best = &items.front();
  for (const Value& item : items) {
    const Value key = folded(attribute_or_self(item, path), exact);
    const Value best_key = folded(attribute_or_self(*best, path), exact);
    if (wants_less ? less(key, best_key) : less(best_key, key)) best = &item;
  }
  return *best;
}

Value sum(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("sum", arguments, {"attribute", "start"});
  const Value path = parameters.value_or("attribute", Value());
  Value total = parameters.value_or("start", Value(std::int64_t{0}));
  for (const Value& item : iterate(subject))
    total = calculate(Arithmetic::add, total, attribute_or_self(item, path));
  return total;
}

Value batch(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("batch", arguments, {"linecount", "fill_with"});
  const auto size =
      static_cast<std::size_t>(std::max<std::int64_t>(1, parameters.integer_or("linecount", 1)));
  const Value fill = parameters.value_or("fill_with", Value());
  List batches;
  List current;
  for (const Value& item : iterate(subject)) {
    if (current.size() == size) batches.emplace_back(std::exchange(current, {}));
    current.push_back(item);
  }
  while (!current.empty() && current.size() < size && !fill.is<None>()) current.push_back(fill);
  if (!current.empty()) batches.emplace_back(std::move(current));
  return batches;
}

/// The test that the first argument names, with the other arguments; without any, truth.
class NamedTest {
 public:
  explicit NamedTest(CallArguments arguments) : rest_(std::move(arguments)) {
    if (rest_.positional.empty()) return;
    const std::string name = to_text(rest_.positional.front());
    test_ = find_test(name);
    if (test_ == nullptr) throw TemplateError("No test named '" + name + "'.");
    rest_.positional.erase(rest_.positional.begin());
  }

  bool operator()(const Value& value) const {
    return test_ == nullptr ? is_true(value) : test_(value, rest_);
  }

 private:
  CallArguments rest_;
  Test test_ = nullptr;
};

template <bool keeps>
Value select(const Value& subject, const CallArguments& arguments) {
  const NamedTest test(arguments);
  List out;
  for (const Value& item : iterate(subject)) {
    if (test(item) == keeps) out.push_back(item);
  }
  return out;
}

template <bool keeps>
Value select_by_attribute(const Value& subject, const CallArguments& arguments) {
  if (arguments.positional.empty() || !is_path(arguments.positional.front())) {
    throw TemplateError("Missing parameter for attribute name");
  }
  CallArguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  const NamedTest test(std::move(rest));
  List out;
  for (const Value& item : iterate(subject)) {
    if (test(dotted(item, arguments.positional.front())) == keeps) out.push_back(item);
  }
  return out;
}

Value map_attribute(const Value& subject, const CallArguments& arguments) {
  const Parameters parameters("map", arguments, {"attribute", "default"});
  if (!is_path(parameters.at("attribute"))) throw TemplateError("map() needs an attribute's name");
  List out;
  for (const Value& item : iterate(subject)) {
    Value value = dotted(item, parameters.at("attribute"));
    out.push_back(value.is<Undefined>() ? parameters.value_or("default", value) : value);
  }
  return out;
}

Value map(const Value& subject, const CallArguments& arguments) {
  if (arguments.positional.empty()) return map_attribute(subject, arguments);
  const std::string name = to_text(arguments.positional.front());
  const Filter filter = find_filter(name);
  if (filter == nullptr) throw TemplateError("No filter named '" + name + "'.");
  CallArguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  List out;
  for (const Value& item : iterate(subject)) out.push_back(filter(item, rest));
  return out;
}

}  // namespace

const std::map<std::string, Filter>& sequence_filters() {
  static const std::map<std::string, Filter> kFilters{
      {"batch", batch},
      {"count", count},
      {"dictsort", dictsort},
      {"first", first},
      {"items", items},
      {"join", join},
      {"last", last},
      {"length", count},
      {"list", list},
      {"map", map},
      {"max", extreme<false>},
      {"min", extreme<true>},
      {"reject", select<false>},
      {"rejectattr", select_by_attribute<false>},
      {"reverse", reverse},
      {"select", select<true>},
      {"selectattr", select_by_attribute<true>},
      {"sort", sort},
      {"sum", sum},
      {"unique", unique},
  };
  return kFilters;
}

Filter find_filter(const std::string& name) {
  for (const auto* table : {&text_filters(), &sequence_filters()}) {
    const auto found = table->find(name);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

}  // namespace sangam::jinja
