// Two ways to merge with one result: scanning for short words, a queue for long ones.
#include <algorithm>
#include <array>

#include "gateway/text/tokenizer/bpe.hpp"

namespace sangam::text {
namespace {

constexpr std::size_t kShort = 24;  // Measured: below this, scanning an array beats a heap.

using Candidate = Bpe::Scratch::Candidate;

/// The earliest-learned merge first, the leftmost of equals.
bool later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

void Bpe::merge(Scratch& scratch, std::vector<TokenId>& out) const {
  if (scratch.letters.size() <= kShort) {
    merge_short(scratch.letters, out);
  } else {
    merge_long(scratch, out);
  }
}

void Bpe::merge_short(std::vector<TokenId>& letters, std::vector<TokenId>& out) const {
  std::array<MergeTable::Merge, kShort> pairs;  // pairs[i] joins letters i and i + 1.
  std::size_t size = letters.size();
  for (std::size_t i = 0; i + 1 < size; ++i) pairs[i] = merges_.find(letters[i], letters[i + 1]);

  while (size > 1) {
    const auto end = pairs.begin() + static_cast<std::ptrdiff_t>(size - 1);
    const auto best = std::min_element(pairs.begin(), end, [](auto& a, auto& b) { return a.rank < b.rank; });
    if (best->rank == kNoMerge) break;
    const auto at = static_cast<std::size_t>(best - pairs.begin());
    letters[at] = best->merged;
    std::copy(letters.begin() + static_cast<std::ptrdiff_t>(at + 2),
              letters.begin() + static_cast<std::ptrdiff_t>(size),
              letters.begin() + static_cast<std::ptrdiff_t>(at + 1));
    std::copy(best + 1, end, best);
    --size;
    if (at > 0) pairs[at - 1] = merges_.find(letters[at - 1], letters[at]);
    if (at + 1 < size) pairs[at] = merges_.find(letters[at], letters[at + 1]);
  }
  out.insert(out.end(), letters.begin(), letters.begin() + static_cast<std::ptrdiff_t>(size));
}

void Bpe::consider(std::int32_t left, Scratch& scratch) const {
  const auto& symbols = scratch.symbols;
  if (left < 0 || symbols[static_cast<std::size_t>(left)].next < 0) return;
  const auto& symbol = symbols[static_cast<std::size_t>(left)];
  const auto merge = merges_.find(symbol.id, symbols[static_cast<std::size_t>(symbol.next)].id);
  if (merge.rank == kNoMerge) return;
  scratch.queue.push_back({merge.rank, left, merge.merged});
  std::push_heap(scratch.queue.begin(), scratch.queue.end(), later);
}

void Bpe::merge_long(Scratch& scratch, std::vector<TokenId>& out) const {
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  const auto count = static_cast<std::int32_t>(scratch.letters.size());
  symbols.clear();
  queue.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    symbols.push_back(
        {scratch.letters[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, false});
  }
  for (std::int32_t i = 0; i + 1 < count; ++i) consider(i, scratch);

  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), later);
    const Candidate best = queue.back();
    queue.pop_back();
    auto& left = symbols[static_cast<std::size_t>(best.at)];
    if (left.gone || left.next < 0) continue;
    auto& right = symbols[static_cast<std::size_t>(left.next)];
    const auto current = merges_.find(left.id, right.id);
    // One of the two has merged otherwise since; what they are now has a candidate of its own.
    if (current.rank == kNoMerge || current.merged != best.merged) continue;
    left.id = best.merged;
    left.next = right.next;
    right.gone = true;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.at;
    consider(left.previous, scratch);
    consider(best.at, scratch);
  }
  for (std::int32_t i = 0; i >= 0 && i < count; i = symbols[static_cast<std::size_t>(i)].next) {
    out.push_back(symbols[static_cast<std::size_t>(i)].id);
  }
}

}  // namespace sangam::text
