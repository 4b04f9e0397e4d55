// An arena of pages and sequences that live in it, as an engine would keep them: pages are handed out in any
// order, steps may be of any size.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "gpu/model/model.hpp"

namespace sangam::testing {

class PagedSequences {
 public:
  /// Pages are dealt in the order that `seed` gives and hold garbage at first (NaN patterns).
  PagedSequences(Model& model, std::int64_t tokens_per_page, std::size_t page_count, std::uint32_t seed = 1)
      : model_(model), tokens_per_page_(tokens_per_page), free_(page_count) {
    arena_.page_bytes = std::size_t(tokens_per_page) * model.kv_bytes_per_token();
    memory_.resize(arena_.page_bytes * page_count, std::byte{0xff});
    arena_.base = memory_.data();
    std::iota(free_.begin(), free_.end(), 0u);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(seed));
  }

  /// A new, empty sequence; returns its number.
  std::size_t add() { return sequences_.emplace_back(), sequences_.size() - 1; }

  struct Turn {
    std::size_t sequence = 0;
    std::vector<TokenId> tokens;
    bool wants_logits = true;
  };

  /// One step; returns the logits of each turn that wants them.
  std::vector<std::vector<float>> step(const std::vector<Turn>& turns) {
    std::vector<SequenceSlice> slices;
    std::size_t wanted = 0;
    for (const Turn& turn : turns) grow(sequences_[turn.sequence], std::int64_t(turn.tokens.size()));
    for (const Turn& turn : turns) {
      Sequence& s = sequences_[turn.sequence];
      slices.push_back({turn.tokens, s.position, s.pages, turn.wants_logits});
      s.position += std::int64_t(turn.tokens.size());
      wanted += turn.wants_logits;
    }
    const auto vocab = std::size_t(model_.config().vocab_size);
    std::vector<float> logits(wanted * vocab);
    model_.forward(slices, arena_, logits);
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < wanted; ++i) {
      rows.emplace_back(logits.begin() + long(i * vocab), logits.begin() + long((i + 1) * vocab));
    }
    return rows;
  }

  /// A whole prompt in chunks of `chunk` tokens; returns the logits of its last token.
  std::vector<float> prefill(std::size_t sequence, std::span<const TokenId> prompt, std::size_t chunk) {
    std::vector<float> last;
    for (std::size_t at = 0; at < prompt.size(); at += chunk) {
      const auto part = prompt.subspan(at, std::min(chunk, prompt.size() - at));
      const bool ends = at + part.size() == prompt.size();
      const auto rows = step({{sequence, {part.begin(), part.end()}, ends}});
      if (ends) last = rows.front();
    }
    return last;
  }

 private:
  struct Sequence {
    std::int64_t position = 0;
    std::vector<PageId> pages;
  };

  void grow(Sequence& s, std::int64_t tokens) {
    while (std::int64_t(s.pages.size()) * tokens_per_page_ < s.position + tokens) {
      if (free_.empty()) throw std::runtime_error("the test's arena has too few pages");
      s.pages.push_back(PageId{free_.back()});
      free_.pop_back();
    }
  }

  Model& model_;
  std::int64_t tokens_per_page_;
  std::vector<std::uint32_t> free_;
  std::vector<std::byte> memory_;
  PageArena arena_;
  std::vector<Sequence> sequences_;
};

}  // namespace sangam::testing
