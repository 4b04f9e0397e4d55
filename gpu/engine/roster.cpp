// Admission, growth and preemption: one order decides all three.
#include "gpu/engine/roster.hpp"

#include <algorithm>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {

Roster::Roster(FreePages& pages, std::int64_t running_max) : pages_(pages), running_max_(running_max) {
  SANGAM_ASSERT(running_max >= 1, running_max);
}

Roster::~Roster() {
  for (auto& [rank, sequence] : by_rank_) release(sequence);
}

void Roster::add(Sequence sequence) {
  const Rank rank = sequence.rank;
  const bool is_new = rank_of_.emplace(sequence.run.request, rank).second;
  SANGAM_ASSERT(is_new, "request added twice", sequence.run.request);
  by_rank_.emplace(rank, std::move(sequence));
}

bool Roster::remove(RequestId request) {
  const auto rank = rank_of_.find(request);
  if (rank == rank_of_.end()) return false;
  const auto entry = by_rank_.find(rank->second);
  if (entry->second.running) {
    release(entry->second);
    --running_;
  }
  by_rank_.erase(entry);
  rank_of_.erase(rank);
  return true;
}

void Roster::admit() {
  for (auto& [rank, sequence] : by_rank_) {
    if (sequence.running) continue;
    if (!could_enter(sequence)) return;  // nor may anyone overtake it
    const std::int64_t needed = sequence.pages_for(sequence.length());
    while (running_ == running_max_ || pages_.free().count() < needed) preempt(*last_running());
    take_pages(sequence, needed);
    sequence.running = true;
    ++running_;
  }
}

/// Those that rank before it stay, each with a free page to grow into: else it would soon be thrown out
/// again.
bool Roster::could_enter(const Sequence& sequence) const {
  std::int64_t staying = 0;
  std::int64_t within_reach = pages_.free().count();
  for (const auto& [rank, other] : by_rank_) {
    if (!other.running) continue;
    if (rank < sequence.rank) {
      ++staying;
    } else {
      within_reach += std::int64_t(other.pages.size());
    }
  }
  return staying < running_max_ && sequence.pages_for(sequence.length()) + staying <= within_reach;
}

const Sequence* Roster::hopeless() const {
  return running_ == 0 && !by_rank_.empty() ? &by_rank_.begin()->second : nullptr;
}

bool Roster::grow(Sequence& sequence, std::int64_t length) {
  SANGAM_ASSERT(sequence.running, sequence.run.request);
  const std::int64_t more = sequence.pages_for(length) - std::int64_t(sequence.pages.size());
  while (pages_.free().count() < more) {
    Sequence& victim = *last_running();
    preempt(victim);
    if (&victim == &sequence) return false;
  }
  take_pages(sequence, std::max<std::int64_t>(more, 0));
  return true;
}

std::vector<Sequence*> Roster::running(const ModelId& model) {
  std::vector<Sequence*> result;
  for (auto& [rank, sequence] : by_rank_) {
    if (sequence.running && sequence.run.model == model) result.push_back(&sequence);
  }
  return result;
}

bool Roster::runs(const ModelId& model) const {
  return std::any_of(by_rank_.begin(), by_rank_.end(), [&](const auto& entry) {
    return entry.second.running && entry.second.run.model == model;
  });
}

RosterCount Roster::count(const ModelId& model) const {
  RosterCount count;
  for (const auto& [rank, sequence] : by_rank_) {
    if (sequence.run.model != model) continue;
    ++(sequence.running ? count.running : count.waiting);
    count.pages += Pages(std::int64_t(sequence.pages.size()));
  }
  const auto preemptions = preemptions_.find(model);
  if (preemptions != preemptions_.end()) count.preemptions = preemptions->second;
  return count;
}

Pages Roster::held() const {
  Pages held;
  for (const auto& [rank, sequence] : by_rank_) held += Pages(std::int64_t(sequence.pages.size()));
  return held;
}

Sequence* Roster::last_running() {
  const auto last = std::find_if(by_rank_.rbegin(), by_rank_.rend(),
                                 [](const auto& entry) { return entry.second.running; });
  SANGAM_ASSERT(last != by_rank_.rend(), running_, pages_.free());
  return &last->second;
}

void Roster::take_pages(Sequence& sequence, std::int64_t count) {
  for (; count > 0; --count) {
    const auto page = pages_.take_lowest();
    SANGAM_ASSERT(page.has_value(), sequence.run.request, count);
    sequence.pages.push_back(*page);
  }
}

void Roster::release(Sequence& sequence) {
  for (const PageId page : sequence.pages) pages_.give_back({page, Pages{1}});
  sequence.pages.clear();
}

void Roster::preempt(Sequence& sequence) {
  release(sequence);
  sequence.computed = 0;
  sequence.running = false;
  --running_;
  ++preemptions_[sequence.run.model];
}

}  // namespace sangam
