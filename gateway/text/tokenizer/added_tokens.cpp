// A tree of spellings, and the rules on the blanks and words around a match.
#include "gateway/text/tokenizer/added_tokens.hpp"

#include <algorithm>

#include "gateway/text/unicode.hpp"

namespace sangam::text {
namespace {

std::size_t character_before(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool word_before(std::string_view text, std::size_t at) {
  return at > 0 && is_word(utf8_step(text, character_before(text, at)).value);
}

bool word_after(std::string_view text, std::size_t at) {
  return at < text.size() && is_word(utf8_step(text, at).value);
}

std::size_t blanks_begin(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t before = character_before(text, end);
    if (!is_white_space(utf8_step(text, before).value)) break;
    end = before;
  }
  return end;
}

std::size_t blanks_end(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Utf8Step step = utf8_step(text, begin);
    if (!is_white_space(step.value)) break;
    begin += step.size;
  }
  return begin;
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token, std::string_view spelling) {
  if (spelling.empty()) return;
  std::size_t node = 0;
  for (const char c : spelling) {
    auto& children = nodes_[node].children;
    const auto found =
        std::find_if(children.begin(), children.end(), [c](auto& child) { return child.first == c; });
    if (found != children.end()) {
      node = found->second;
      continue;
    }
    children.emplace_back(c, nodes_.size());
    node = nodes_.size();
    nodes_.emplace_back();
  }
  nodes_[node].token = tokens_.size();
  tokens_.push_back(token);
  starts_[static_cast<unsigned char>(spelling.front())] = true;
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::longest_at(std::string_view text,
                                                                    std::size_t at) const {
  std::optional<Match> longest;
  std::size_t node = 0;
  for (std::size_t end = at; end < text.size();) {
    const auto& children = nodes_[node].children;
    const auto found = std::find_if(children.begin(), children.end(),
                                    [c = text[end]](const auto& child) { return child.first == c; });
    if (found == children.end()) break;
    node = found->second;
    ++end;
    if (nodes_[node].token) longest = Match{*nodes_[node].token, {at, end}};
  }
  return longest;
}

bool AddedTokenFinder::admits(const AddedToken& token, std::string_view text, Span span) const {
  return !token.single_word || (!word_before(text, span.begin) && !word_after(text, span.end));
}

std::vector<AddedTokenFinder::Fragment> AddedTokenFinder::split(std::string_view text) const {
  std::vector<Fragment> fragments;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto match =
        starts_[static_cast<unsigned char>(text[at])] ? longest_at(text, at) : std::optional<Match>{};
    if (!match) {
      ++at;
      continue;
    }
    at = match->span.end;
    const AddedToken& token = tokens_[match->token];
    if (!admits(token, text, match->span)) continue;
    Span taken = match->span;
    if (token.lstrip) taken.begin = std::max(done, blanks_begin(text, taken.begin));
    if (token.rstrip) taken.end = blanks_end(text, taken.end);
    if (done < taken.begin) fragments.push_back({std::nullopt, {done, taken.begin}});
    fragments.push_back({token.id, taken});
    done = taken.end;
  }
  if (done < text.size()) fragments.push_back({std::nullopt, {done, text.size()}});
  return fragments;
}

}  // namespace sangam::text
