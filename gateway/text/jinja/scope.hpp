// Names and their values, from the innermost block outwards.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/text/jinja/value.hpp"

namespace sangam::jinja {

/// Assignments stay in the scope where they are made; look-ups go outwards.
class Scope {
 public:
  explicit Scope(std::shared_ptr<const Scope> outer) : outer_(std::move(outer)) {}

  void set(const std::string& name, Value value) {
    for (auto& entry : names_) {
      if (entry.first != name) continue;
      entry.second = std::move(value);
      return;
    }
    names_.emplace_back(name, std::move(value));
  }

  /// Null where no scope has it.
  [[nodiscard]] const Value* find(const std::string& name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_.get()) {
      for (const auto& entry : scope->names_) {
        if (entry.first == name) return &entry.second;
      }
    }
    return nullptr;
  }

 private:
  std::shared_ptr<const Scope> outer_;
  std::vector<std::pair<std::string, Value>> names_;
};

}  // namespace sangam::jinja
