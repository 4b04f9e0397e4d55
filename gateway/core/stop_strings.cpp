// One small automaton per stop string.
#include "gateway/core/stop_strings.hpp"

#include <algorithm>

namespace sangam {
namespace {

std::vector<std::size_t> borders(const std::string& text) {
  std::vector<std::size_t> border(text.size(), 0);
  for (std::size_t i = 1, length = 0; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) length = border[length - 1];
    if (text[i] == text[length]) ++length;
    border[i] = length;
  }
  return border;
}

}  // namespace

StopStrings::StopStrings(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) patterns_.push_back({stop, borders(stop), 0});
}

std::size_t StopStrings::push(char byte) {
  std::size_t complete = 0;
  for (Pattern& pattern : patterns_) {
    std::size_t& matched = pattern.matched;
    while (matched > 0 && pattern.text[matched] != byte) matched = pattern.fallback[matched - 1];
    if (pattern.text[matched] == byte) ++matched;
    if (matched < pattern.text.size()) continue;
    complete = std::max(complete, pattern.text.size());
    matched = pattern.fallback[matched - 1];
  }
  return complete;
}

std::size_t StopStrings::held() const {
  std::size_t longest = 0;
  for (const Pattern& pattern : patterns_) longest = std::max(longest, pattern.matched);
  return longest;
}

}  // namespace sangam
