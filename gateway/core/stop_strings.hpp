// Finds stop strings in text that arrives in pieces (Knuth, Morris and Pratt, 1977).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sangam {

/// The stop that is complete first wins; of those that end together, the longest. So the result does not
/// depend on how the text was cut into pieces.
class StopStrings {
 public:
  explicit StopStrings(const std::vector<std::string>& stops);

  /// Takes the next byte. The length of the stop that it completes, or 0.
  [[nodiscard]] std::size_t push(char byte);
  /// How many of the last bytes may still become a stop: the longest end of the text that begins one.
  [[nodiscard]] std::size_t held() const;
  [[nodiscard]] bool empty() const { return patterns_.empty(); }

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> fallback;  ///< fallback[i]: longest proper border of the first i + 1 bytes.
    std::size_t matched = 0;
  };
  std::vector<Pattern> patterns_;
};

}  // namespace sangam
