// The levels of the bitmap and the search for runs in it; see the header for the order of taking.
#include "gpu/memory/free_pages.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::int64_t kBits = 64;

std::size_t word_of(std::int64_t bit) {
  return std::size_t(bit / kBits);
}
std::uint64_t mask_of(std::int64_t bit) {
  return std::uint64_t{1} << (bit % kBits);
}

}  // namespace

FreePages::FreePages(Pages total) : total_(total), free_(total) {
  std::int64_t bits = std::max<std::int64_t>(total.count(), 1);
  do {
    auto& words = levels_.emplace_back(std::size_t((bits + kBits - 1) / kBits), 0);
    const std::int64_t set_bits = total.count() == 0 ? 0 : bits;
    for (std::int64_t bit = 0; bit < set_bits; ++bit) words[word_of(bit)] |= mask_of(bit);
    bits = std::int64_t(words.size());
  } while (bits > 1);
}

void FreePages::set(Number page) {
  for (auto& level : levels_) {
    Word& word = level[word_of(page)];
    const bool was_empty = word == 0;
    word |= mask_of(page);
    if (!was_empty) return;
    page /= kBits;
  }
}

void FreePages::clear(Number page) {
  for (auto& level : levels_) {
    Word& word = level[word_of(page)];
    word &= ~mask_of(page);
    if (word != 0) return;
    page /= kBits;
  }
}

std::optional<PageId> FreePages::take_lowest() {
  if (free_ == Pages{0}) return std::nullopt;
  Number place = 0;
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    place = place * kBits + std::countr_zero((*level)[std::size_t(place)]);
  clear(place);
  free_ -= Pages{1};
  return PageId(place);
}

FreePages::Number FreePages::last_below(Number end, bool free) const {
  const auto& words = levels_.front();
  const Word flip = free ? 0 : ~Word{0};
  for (Number word = Number(word_of(end - 1)); end > 0 && word >= 0; --word) {
    Word bits = words[std::size_t(word)] ^ flip;
    const Number beyond = (word + 1) * kBits - end;  // bits of this word at or above `end`
    if (beyond > 0) bits &= ~Word{0} >> beyond;
    if (bits != 0) return word * kBits + kBits - 1 - std::countl_zero(bits);
  }
  return -1;
}

PageExtent FreePages::run_below(Number end) const {
  const Number last = last_below(end, true);
  if (last < 0) return {};
  const Number before = last_below(last, false);
  return {PageId(before + 1), Pages(last - before)};
}

std::optional<PageExtent> FreePages::take_extent(Pages count) {
  SANGAM_ASSERT(count > Pages{0}, count);
  if (count > free_) return std::nullopt;
  PageExtent best;
  for (PageExtent run = run_below(total_.count()); run.count > Pages{0}; run = run_below(Number(run.first))) {
    if (run.count < count || (best.count > Pages{0} && run.count >= best.count)) continue;
    best = run;
    if (run.count == count) break;
  }
  if (best.count == Pages{0}) return std::nullopt;
  const PageExtent taken{PageId(Number(best.first) + (best.count - count).count()), count};
  SANGAM_ASSERT(take(taken));
  return taken;
}

std::vector<PageExtent> FreePages::take_highest(Pages count) {
  SANGAM_ASSERT(count > Pages{0}, count);
  std::vector<PageExtent> taken;
  if (count > free_) return taken;
  Number end = total_.count();
  while (count > Pages{0}) {
    const PageExtent run = run_below(end);
    const Pages used = std::min(run.count, count);
    taken.push_back({PageId(Number(run.first) + (run.count - used).count()), used});
    SANGAM_ASSERT(take(taken.back()));
    count -= used;
    end = Number(run.first);
  }
  std::reverse(taken.begin(), taken.end());
  return taken;
}

bool FreePages::take(PageExtent extent) {
  const Number first = Number(extent.first);
  const Number end = first + extent.count.count();
  if (end > total_.count() || last_below(end, false) >= first) return false;
  for (Number page = first; page < end; ++page) clear(page);
  free_ -= extent.count;
  return true;
}

void FreePages::give_back(PageExtent extent) {
  const Number first = Number(extent.first);
  const Number end = first + extent.count.count();
  SANGAM_ASSERT(extent.count > Pages{0} && end <= total_.count(), first, end, total_);
  for (Number page = first; page < end; ++page) {
    SANGAM_ASSERT(!is_free(PageId(page)), "given back twice", page);
    set(page);
  }
  free_ += extent.count;
}

bool FreePages::is_free(PageId page) const {
  return (levels_.front()[word_of(Number(page))] & mask_of(Number(page))) != 0;
}

Pages FreePages::largest_extent() const {
  Pages largest;
  for (PageExtent run = run_below(total_.count()); run.count > Pages{0}; run = run_below(Number(run.first)))
    largest = std::max(largest, run.count);
  return largest;
}

}  // namespace sangam
