// From tokens to text that never breaks a character.
#include "gateway/text/tokenizer.hpp"
#include "gateway/text/tokenizer/parts.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer),
      skip_special_tokens_(skip_special_tokens),
      strips_left_(tokenizer.parts_->decoder.text_start().start) {}

std::string Detokenizer::push(TokenId token) {
  const auto& parts = *tokenizer_->parts_;
  if (token >= parts.tokens.size() || !parts.tokens[token].known) return {};
  const auto& entry = parts.tokens[token];
  if (skip_special_tokens_ && entry.special) return {};
  pending_ += first_ ? parts.decoder.bytes(entry.spelling, true) : entry.bytes;
  first_ = false;
  return take_characters(false);
}

std::string Detokenizer::finish() {
  return take_characters(true);
}

std::string Detokenizer::take_characters(bool at_end) {
  using Kind = text::Utf8Step::Kind;
  const bool each_byte = tokenizer_->parts_->byte_fallback;
  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const text::Utf8Step step = text::utf8_step(pending_, at);
    if (step.kind == Kind::unfinished && !at_end) break;
    if (step.kind == Kind::character) {
      text.append(pending_, at, step.size);
    } else {
      for (std::size_t i = 0; i < (each_byte ? step.size : 1); ++i) text += "\xEF\xBF\xBD";
    }
    at += step.size;
  }
  pending_.erase(0, at);
  if (strips_left_ > 0) strip_start(text);
  return text;
}

void Detokenizer::strip_start(std::string& text) {
  const std::string& content = tokenizer_->parts_->decoder.text_start().content;
  while (strips_left_ > 0 && text.starts_with(content)) {
    text.erase(0, content.size());
    --strips_left_;
  }
  if (!text.empty()) strips_left_ = 0;
}

}  // namespace sangam
