// Cutting text into words; merges never reach across a cut.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gateway/text/tokenizer/regex.hpp"

namespace sangam::text {

/// A word, or text that is still to be cut.
struct Piece {
  std::string_view text;
  bool opens_input = false;  ///< It begins where the user's text begins.
};

/// The pieces of one text, and the strings that some of them had to be rewritten into.
struct Pieces {
  std::vector<Piece> list;
  std::deque<std::string> rewritten;  // A deque: views into its strings stay valid as it grows.
};

/// What becomes of the text that a cut's pattern matched.
enum class CutBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// A list of steps; `Sequence` in the file is flattened into it.
class PreTokenizer {
 public:
  struct Split {
    Regex pattern;
    CutBehavior behavior = CutBehavior::isolated;
    bool invert = false;
  };
  struct Digits {
    bool individual = false;
  };
  struct Punctuation {
    CutBehavior behavior = CutBehavior::isolated;
  };
  struct Whitespace {};       ///< Runs of word characters and runs of other signs; blanks vanish.
  struct WhitespaceSplit {};  ///< At blanks, which vanish.
  struct Metaspace {
    enum class Prepend { always, first, never };
    char32_t replacement = 0x2581;
    Prepend prepend = Prepend::always;
    bool split = true;
  };
  /// Bytes, not characters, are the letters of the vocabulary. Only as the last step.
  struct ByteLevel {
    bool add_prefix_space = true;
    std::optional<Regex> pattern;
  };
  using Step = std::variant<Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace, ByteLevel>;

  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  [[nodiscard]] Pieces apply(Piece whole) const;
  [[nodiscard]] bool byte_level() const;

 private:
  std::vector<Step> steps_;
};

}  // namespace sangam::text
