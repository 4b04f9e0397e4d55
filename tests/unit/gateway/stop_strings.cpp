// Stop strings in text that arrives byte by byte.
#include "gateway/core/stop_strings.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

using sangam::StopStrings;

namespace {

struct Cut {
  std::size_t end = std::string::npos;  // Where the first complete stop ends.
  std::size_t length = 0;
};

/// The same by plain search.
Cut brute_force(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    Cut cut;
    for (const std::string& stop : stops) {
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0 &&
          stop.size() > cut.length) {
        cut = {end, stop.size()};
      }
    }
    if (cut.length > 0) return cut;
  }
  return {};
}

/// Length of the longest end of `text` that is a proper beginning of a stop.
std::size_t held_by_brute_force(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t longest = 0;
  for (const std::string& stop : stops) {
    for (std::size_t size = 1; size < stop.size() && size <= text.size(); ++size) {
      if (text.compare(text.size() - size, size, stop, 0, size) == 0) longest = std::max(longest, size);
    }
  }
  return longest;
}

}  // namespace

TEST_CASE(
    "stops are found where a plain search finds them, and what is held back is a true beginning of a stop") {
  const unsigned seed = 20261130;
  INFO("seed ", seed);
  std::mt19937 random(seed);
  const auto word = [&](std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += char('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t i = 0; i < 1 + random() % 3; ++i) stops.push_back(word(1 + random() % 6));
    const std::string text = word(30);
    const Cut expected = brute_force(text, stops);
    StopStrings found(stops);
    std::size_t end = std::string::npos;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::size_t length = found.push(text[i]);
      if (length > 0) {
        end = i + 1;
        CHECK(length == expected.length);
        break;
      }
      REQUIRE(found.held() == held_by_brute_force(text.substr(0, i + 1), stops));
    }
    REQUIRE(end == expected.end);
  }
}

TEST_CASE("no stops hold nothing back") {
  StopStrings none({});
  CHECK(none.push('x') == 0);
  CHECK(none.held() == 0);
}
