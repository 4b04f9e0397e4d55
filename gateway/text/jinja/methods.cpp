// Methods of dictionaries, lists and the loop; those of strings are in text_methods.cpp.
#include "gateway/text/jinja/methods.hpp"

#include <map>
#include <set>

#include "gateway/text/jinja/arguments.hpp"
#include "gateway/text/jinja/text_methods.hpp"

namespace sangam::jinja {
namespace {

Value get(const Value& self, const CallArguments& arguments) {
  const Parameters parameters("get", arguments, {"key", "default"});
  const Value* found = self.dict()->find(parameters.at("key"));
  return found != nullptr ? *found : parameters.value_or("default", Value());
}

Value items(const Value& self, const CallArguments& arguments) {
  const Parameters none("items", arguments, {});
  List pairs;
  for (const auto& [key, value] : self.dict()->entries) pairs.push_back(Value::tuple({key, value}));
  return pairs;
}

Value keys(const Value& self, const CallArguments& arguments) {
  const Parameters none("keys", arguments, {});
  List keys;
  for (const auto& entry : self.dict()->entries) keys.push_back(entry.first);
  return keys;
}

Value values(const Value& self, const CallArguments& arguments) {
  const Parameters none("values", arguments, {});
  List values;
  for (const auto& entry : self.dict()->entries) values.push_back(entry.second);
  return values;
}

Value copy(const Value& self, const CallArguments& arguments) {
  const Parameters none("copy", arguments, {});
  return self;
}

Value count(const Value& self, const CallArguments& arguments) {
  const Value wanted = Parameters("count", arguments, {"value"}).at("value");
  std::int64_t count = 0;
  for (const Value& item : *self.items()) count += equal(item, wanted) ? 1 : 0;
  return count;
}

Value index(const Value& self, const CallArguments& arguments) {
  const Value wanted = Parameters("index", arguments, {"value"}).at("value");
  std::int64_t at = 0;
  for (const Value& item : *self.items()) {
    if (equal(item, wanted)) return at;
    ++at;
  }
  throw TemplateError("the value is not in the list");
}

Value cycle(const Value& self, const CallArguments& arguments) {
  if (arguments.positional.empty()) throw TemplateError("no items for cycling given");
  return arguments.positional[self.loop()->index % arguments.positional.size()];
}

const std::map<std::string, Method>* methods_of(const Value& self) {
  static const std::map<std::string, Method> kDict{
      {"get", get}, {"items", items}, {"keys", keys}, {"values", values}, {"copy", copy}};
  static const std::map<std::string, Method> kList{{"count", count}, {"index", index}, {"copy", copy}};
  static const std::map<std::string, Method> kTuple{{"count", count}, {"index", index}};
  static const std::map<std::string, Method> kLoop{{"cycle", cycle}};
  if (self.text() != nullptr) return &text_methods();
  if (self.dict() != nullptr) return &kDict;
  if (self.items() != nullptr) return self.is<Tuple>() ? &kTuple : &kList;
  return self.loop() != nullptr ? &kLoop : nullptr;
}

bool changes_value(const Value& self, const std::string& name) {
  static const std::set<std::string> kDict{"clear", "pop", "popitem", "setdefault", "update"};
  static const std::set<std::string> kList{"append", "clear",  "extend",  "insert",
                                           "pop",    "remove", "reverse", "sort"};
  if (self.dict() != nullptr) return kDict.contains(name);
  return self.items() != nullptr && !self.is<Tuple>() && kList.contains(name);
}

}  // namespace

Method find_method(const Value& self, const std::string& name) {
  const auto* methods = methods_of(self);
  if (methods == nullptr) return nullptr;
  const auto found = methods->find(name);
  if (found != methods->end()) return found->second;
  if (changes_value(self, name)) {
    throw TemplateError("access to attribute '" + name + "' of '" + type_name(self) + "' object is unsafe.");
  }
  return nullptr;
}

}  // namespace sangam::jinja
