// SANGAM_ASSERT: a broken invariant of ours. Always on; prints the values and ends the process.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace sangam::detail {

template <class... Values>
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition, const Values&... values) {
  std::ostringstream text;
  text << file << ':' << line << ": broken invariant: " << condition;
  ((text << "; " << values), ...);
  std::fprintf(stderr, "%s\n", text.str().c_str());
  std::abort();
}

}  // namespace sangam::detail

/// SANGAM_ASSERT(condition, values...): the values are printed when the condition is false.
#define SANGAM_ASSERT(condition, ...) \
  ((condition) ? void(0)              \
               : ::sangam::detail::assertion_failed(__FILE__, __LINE__, #condition __VA_OPT__(, ) __VA_ARGS__))
