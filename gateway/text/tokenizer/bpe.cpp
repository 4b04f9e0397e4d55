// Building the tables, and from a word to its letters.
#include "gateway/text/tokenizer/bpe.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "gateway/text/tokenizer/byte_alphabet.hpp"
#include "gateway/text/unicode.hpp"

namespace sangam::text {
namespace {

constexpr std::size_t kBasicPlane = 0x10000;

std::string fallback_token(std::size_t byte) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned>(byte));
  return text.data();
}

}  // namespace

Result<Bpe> Bpe::make(const BpeModel& model) {
  Bpe bpe;
  bpe.fuse_unknown_ = model.fuse_unknown;
  bpe.byte_fallback_ = model.byte_fallback;
  bpe.byte_level_ = model.byte_level;
  bpe.tokens_.reserve(model.vocabulary.size());
  TokenId id_limit = 0;
  for (const auto& [text, id] : model.vocabulary) {
    const auto spelled = model.byte_level ? bytes_spelled(text) : std::optional(text);
    if (spelled) bpe.tokens_.emplace(*spelled, id);
    if (spelled) bpe.longest_ = std::max(bpe.longest_, spelled->size());
    id_limit = std::max(id_limit, id + 1);
  }
  const Result<std::size_t> merges = bpe.add_merges(model);
  if (!merges) return merges.error();
  if (model.unknown) {
    bpe.unknown_ = bpe.find(*model.unknown);
    if (!bpe.unknown_) {
      return make_error(ErrorCode::corrupt, "model.unk_token " + *model.unknown + " is not in model.vocab");
    }
  }
  bpe.add_letters(model);
  bpe.whole_.resize(id_limit);
  bpe.mark_whole_words(model);
  return bpe;
}

Result<std::size_t> Bpe::add_merges(const BpeModel& model) {
  std::unordered_map<std::string_view, TokenId> ids;
  ids.reserve(model.vocabulary.size());
  for (const auto& [text, id] : model.vocabulary) ids.emplace(text, id);
  const auto id_of = [&ids](std::string_view text) {
    const auto found = ids.find(text);
    return found == ids.end() ? std::nullopt : std::optional(found->second);
  };

  merges_ = MergeTable(model.merges.size());
  MergeRank rank = 0;
  for (const auto& [left, right] : model.merges) {
    const auto left_id = id_of(left);
    const auto right_id = id_of(right);
    const auto merged = id_of(left + right);
    if (!left_id || !right_id || !merged) {
      const std::string absent = !left_id ? left : !right_id ? right : left + right;
      return make_error(ErrorCode::corrupt, "model.merges[" + std::to_string(rank) + "] needs the token " +
                                                absent + ", which is not in model.vocab");
    }
    merges_.add(*left_id, *right_id, {rank++, *merged});
  }
  return model.merges.size();
}

void Bpe::add_letters(const BpeModel& model) {
  bytes_.fill(kNone);
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    const auto id = find(model.byte_level ? std::string(1, static_cast<char>(byte)) : fallback_token(byte));
    if (id) bytes_[byte] = *id;
  }
  if (model.byte_level) return;
  characters_.assign(kBasicPlane, kNone);
  for (const auto& [text, id] : model.vocabulary) {
    if (text.empty() || utf8_size(text.front()) != text.size()) continue;
    const Utf8Step step = utf8_step(text, 0);
    if (step.value < kBasicPlane) characters_[step.value] = id;
  }
}

/// Most words of natural text are tokens, so that one look-up replaces their merging.
void Bpe::mark_whole_words(const BpeModel& model) {
  Scratch scratch;
  std::vector<TokenId> tokens;
  std::vector<bool> whole(whole_.size());
  for (const auto& [text, id] : tokens_) {
    tokens.clear();
    // No entry of whole_ is set yet, so that this merges.
    if (!model.ignore_merges) encode(text, scratch, tokens);
    whole[id] = model.ignore_merges || (tokens.size() == 1 && tokens.front() == id);
  }
  whole_ = std::move(whole);
}

std::optional<TokenId> Bpe::find(std::string_view text) const {
  const auto found = tokens_.find(text);
  return found == tokens_.end() ? std::nullopt : std::optional(found->second);
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (word.size() <= longest_) {
    const auto id = find(word);
    if (id && whole_[*id]) {
      out.push_back(*id);
      return;
    }
  }
  scratch.letters.clear();
  byte_level_ ? byte_letters(word, scratch.letters) : character_letters(word, scratch.letters);
  merge(scratch, out);
}

void Bpe::byte_letters(std::string_view word, std::vector<TokenId>& letters) const {
  bool after_unknown = false;
  for (const char c : word) {
    const TokenId id = bytes_[static_cast<unsigned char>(c)];
    const bool is_unknown = id == kNone;
    if (!is_unknown) letters.push_back(id);
    if (is_unknown && unknown_ && !(fuse_unknown_ && after_unknown)) letters.push_back(*unknown_);
    after_unknown = is_unknown;
  }
}

std::optional<TokenId> Bpe::character(std::string_view letter) const {
  const char32_t value = utf8_step(letter, 0).value;
  if (value >= kBasicPlane) return find(letter);
  const TokenId id = characters_[value];
  return id == kNone ? std::nullopt : std::optional(id);
}

bool Bpe::fall_back_to_bytes(std::string_view letter, std::vector<TokenId>& letters) const {
  const auto token = [this](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (std::any_of(letter.begin(), letter.end(), [&](char byte) { return token(byte) == kNone; }))
    return false;
  for (const char byte : letter) letters.push_back(token(byte));
  return true;
}

void Bpe::character_letters(std::string_view word, std::vector<TokenId>& letters) const {
  // An unknown token is held back until a known letter ends its run; fallback bytes do not end it. That is
  // the order in which the library that trained the merges saw them.
  bool unknown_waits = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view letter = word.substr(at, utf8_size(word[at]));
    at += letter.size();
    if (const auto id = character(letter)) {
      if (unknown_waits) letters.push_back(*unknown_);
      unknown_waits = false;
      letters.push_back(*id);
    } else if (!(byte_fallback_ && fall_back_to_bytes(letter, letters)) && unknown_) {
      if (unknown_waits && !fuse_unknown_) letters.push_back(*unknown_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) letters.push_back(*unknown_);
}

}  // namespace sangam::text
