// What is done to text before it is cut: normal forms, case, blanks, replacements.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "gateway/text/tokenizer/regex.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::text {

/// `text` with every match of `pattern` replaced by `content`, taken literally.
[[nodiscard]] std::string replace_all(std::string text, const Regex& pattern, std::string_view content);

/// A list of steps; `Sequence` in the file is flattened into it.
class Normalizer {
 public:
  struct ToForm {
    NormalForm form = NormalForm::nfc;
  };
  struct Lowercase {};
  struct Prepend {
    std::string text;
  };
  struct Replace {
    Regex pattern;
    std::string content;
  };
  struct Strip {
    bool left = true;
    bool right = true;
  };
  using Step = std::variant<ToForm, Lowercase, Prepend, Replace, Strip>;

  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  /// `text` is well-formed UTF-8.
  [[nodiscard]] std::string apply(std::string text) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace sangam::text
