// What is wrong with a template before it runs.
#pragma once

#include <stdexcept>
#include <string>

namespace sangam::jinja {

struct TemplateSyntaxError : std::runtime_error {
  TemplateSyntaxError(const std::string& message, int at_line) : std::runtime_error(message), line(at_line) {}
  int line;
};

}  // namespace sangam::jinja
