// The order of the steps; each step is a class of its own.
#include "gateway/text/tokenizer.hpp"

#include <algorithm>

#include "gateway/text/tokenizer/parts.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam {
namespace {

using text::TokenizerParts;

const std::string kNothing;

/// One call's way from text to tokens.
class Encoding {
 public:
  explicit Encoding(const TokenizerParts& parts) : parts_(parts) {}

  std::vector<TokenId> run(std::string_view input) {
    for (const auto& fragment : parts_.raw_tokens.split(input)) {
      const text::Span span = fragment.span;
      if (fragment.token) {
        out_.push_back(*fragment.token);
      } else {
        normalized(input.substr(span.begin, span.end - span.begin), span.begin == 0);
      }
    }
    return std::move(out_);
  }

 private:
  void normalized(std::string_view part, bool opens_input) {
    const std::string normal = parts_.normalizer.apply(std::string(part));
    for (const auto& fragment : parts_.normalized_tokens.split(normal)) {
      const text::Span span = fragment.span;
      if (fragment.token) {
        out_.push_back(*fragment.token);
        continue;
      }
      const auto piece = std::string_view(normal).substr(span.begin, span.end - span.begin);
      words(parts_.pre_tokenizer.apply({piece, opens_input && span.begin == 0}));
    }
  }

  void words(const text::Pieces& pieces) {
    for (const text::Piece& piece : pieces.list) parts_.bpe.encode(piece.text, scratch_, out_);
  }

  const TokenizerParts& parts_;
  text::Bpe::Scratch scratch_;
  std::vector<TokenId> out_;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  std::string replaced;
  if (!text::is_well_formed(text)) {
    replaced = text::replace_ill_formed(text);
    text = replaced;
  }
  std::vector<TokenId> tokens = Encoding(*parts_).run(text);
  if (add_special_tokens) {
    tokens.insert(tokens.begin(), parts_->frame.before.begin(), parts_->frame.before.end());
    tokens.insert(tokens.end(), parts_->frame.after.begin(), parts_->frame.after.end());
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, bool skip_special_tokens) const {
  Detokenizer detokenizer(*this, skip_special_tokens);
  std::string text;
  for (const TokenId token : tokens) text += detokenizer.push(token);
  return text += detokenizer.finish();
}

const std::string& Tokenizer::bytes_of(TokenId token) const {
  return token < size() ? parts_->tokens[token].bytes : kNothing;
}

const std::string& Tokenizer::spelling_of(TokenId token) const {
  return token < size() ? parts_->tokens[token].spelling : kNothing;
}

std::optional<TokenId> Tokenizer::find(std::string_view spelling) const {
  const auto found = parts_->ids.find(spelling);
  return found == parts_->ids.end() ? std::nullopt : std::optional(found->second);
}

bool Tokenizer::is_special(TokenId token) const {
  return token < size() && parts_->tokens[token].special;
}

std::size_t Tokenizer::size() const {
  return parts_->tokens.size();
}

const std::vector<Tokenizer::RoleToken>& Tokenizer::roles() const {
  return parts_->roles;
}

std::optional<TokenId> Tokenizer::id_of(std::string_view role) const {
  const auto& roles = parts_->roles;
  const auto found =
      std::find_if(roles.begin(), roles.end(), [role](auto& token) { return token.role == role; });
  return found == roles.end() ? std::nullopt : found->id;
}

}  // namespace sangam
