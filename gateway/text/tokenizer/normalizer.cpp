// The steps of a normalizer.
#include "gateway/text/tokenizer/normalizer.hpp"

namespace sangam::text {
namespace {

std::size_t blank_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text, at);
    if (!is_white_space(step.value)) break;
    at += step.size;
  }
  return at;
}

std::size_t blank_suffix_begin(std::string_view text) {
  std::size_t begin = text.size();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (!is_white_space(step.value)) {
      begin = text.size();
    } else if (begin == text.size()) {
      begin = at;
    }
    at += step.size;
  }
  return begin;
}

std::string run(const Normalizer::ToForm& step, std::string text) {
  return is_ascii(text) ? std::move(text) : normalize(text, step.form);
}

std::string run(const Normalizer::Lowercase&, std::string text) {
  return lower_each(text);
}

std::string run(const Normalizer::Prepend& step, std::string text) {
  return text.empty() ? std::move(text) : step.text + text;
}

std::string run(const Normalizer::Replace& step, std::string text) {
  return replace_all(std::move(text), step.pattern, step.content);
}

std::string run(const Normalizer::Strip& step, std::string text) {
  if (step.right) text.erase(blank_suffix_begin(text));
  if (step.left) text.erase(0, blank_prefix(text));
  return text;
}

}  // namespace

std::string replace_all(std::string text, const Regex& pattern, std::string_view content) {
  const std::vector<Span> matches = pattern.matches(text);
  if (matches.empty()) return text;
  std::string out;
  out.reserve(text.size());
  std::size_t done = 0;
  for (const Span& match : matches) {
    out.append(text, done, match.begin - done).append(content);
    done = match.end;
  }
  return out.append(text, done);
}

std::string Normalizer::apply(std::string text) const {
  for (const Step& step : steps_) {
    text = std::visit([&text](const auto& kind) { return run(kind, std::move(text)); }, step);
  }
  return text;
}

}  // namespace sangam::text
