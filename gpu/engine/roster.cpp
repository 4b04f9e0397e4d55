// Admission, growth and preemption: one order decides all three.
#include "gpu/engine/roster.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

bool in_one_line(const Sequence& a, const Sequence& b) {
  return a.run.service_class == b.run.service_class && a.run.model == b.run.model;
}

}  // namespace

Roster::Roster(KvPages& pages, std::int64_t running_max) : pages_(pages), running_max_(running_max) {
  SANGAM_ASSERT(running_max >= 1, running_max);
}

Roster::~Roster() {
  for (auto& [request, sequence] : sequences_) pages_.let_go(sequence.kv);
}

void Roster::add(Sequence sequence) {
  const RequestId request = sequence.run.request;
  sequence.rank = {sequence.run.service_class, 0, ++changes_};
  for (const Sequence* other : by_rank_) sequence.rank.place += in_one_line(*other, sequence) ? 1 : 0;
  const auto [entry, is_new] = sequences_.emplace(request, std::move(sequence));
  SANGAM_ASSERT(is_new, "request added twice", request);
  running_ += entry->second.running ? 1 : 0;
  by_rank_.push_back(&entry->second);
  sort_by_rank();
}

bool Roster::remove(RequestId request) {
  if (!contains(request)) return false;
  Sequence gone = take(request);
  pages_.let_go(gone.kv);
  return true;
}

Sequence Roster::take(RequestId request) {
  const auto entry = sequences_.find(request);
  SANGAM_ASSERT(entry != sequences_.end(), request);
  std::erase(by_rank_, &entry->second);
  Sequence gone = std::move(entry->second);
  sequences_.erase(entry);
  running_ -= gone.running ? 1 : 0;
  ++changes_;
  for (Sequence* other : by_rank_) {
    if (!in_one_line(*other, gone) || other->rank.place < gone.rank.place) continue;
    --other->rank.place;
    other->rank.since = changes_;
  }
  sort_by_rank();
  return gone;
}

/// Each that runs or is expected has a page to grow into. A preempted one that waits comes first: else it
/// might wait for ever.
bool Roster::could_expect(std::int64_t pages) const {
  const bool preempted_waits = std::any_of(by_rank_.begin(), by_rank_.end(), [](const Sequence* sequence) {
    return sequence->admitted && !sequence->running;
  });
  return !preempted_waits && running_ < places() &&
         pages + running_ + kept_free_ <= pages_.available().count();
}

void Roster::sort_by_rank() {
  std::sort(by_rank_.begin(), by_rank_.end(),
            [](const Sequence* a, const Sequence* b) { return a->rank < b->rank; });
}

void Roster::admit() {
  for (Sequence* sequence : by_rank_) {
    if (sequence->running) continue;
    if (!has_place(*sequence)) return;  // nor may anyone overtake it
    // Shared first: what it has already is then neither missing nor to be had from others.
    pages_.share(sequence->kv, sequence->realm, sequence->shareable());
    if (!has_pages(*sequence)) return pages_.let_go(sequence->kv);
    enter(*sequence);
  }
}

void Roster::enter(Sequence& sequence) {
  const std::int64_t missing = sequence.pages_for(sequence.length()) - sequence.kv.shared.length;
  while (running_ >= places() || pages_.available().count() < missing) preempt(last_to_leave());
  sequence.computed = sequence.kv.shared.length * sequence.realm.tokens_per_page;
  pages_.take(sequence.kv, missing);
  sequence.running = true;
  ++running_;
  if (sequence.sink != nullptr) sequence.sink->begins(sequence.run.request, sequence.kv.pages);
  if (std::exchange(sequence.admitted, true) || sequence.realm.model.empty()) return;
  sequence.cached = std::min(sequence.computed, sequence.prompt_length);
  Counts& counts = counts_[sequence.run.model];
  counts.prefix_queries += std::uint64_t(sequence.length());
  counts.prefix_hits += std::uint64_t(sequence.computed);
}

/// Those that rank before it stay, and those with a sink.
bool Roster::has_place(const Sequence& sequence) const {
  return std::count_if(by_rank_.begin(), by_rank_.end(), [&](const Sequence* other) {
           return other->running && (other->sink != nullptr || other->rank < sequence.rank);
         }) < places();
}

/// Those that stay keep a free page to grow into: else it would soon be thrown out again. Those with a sink
/// do not grow.
bool Roster::has_pages(const Sequence& sequence) const {
  std::int64_t growing = 0;
  std::vector<const KvHold*> leaving;
  for (const Sequence* other : by_rank_) {
    if (!other->running || other->sink != nullptr) continue;
    if (other->rank < sequence.rank) {
      ++growing;
    } else {
      leaving.push_back(&other->kv);
    }
  }
  const std::int64_t missing = sequence.pages_for(sequence.length()) - sequence.kv.shared.length;
  return missing + growing <= pages_.available_without(leaving).count();
}

const Sequence* Roster::hopeless() const {
  return running_ == 0 && pages_.all_available() && kept_free_ == 0 && !by_rank_.empty() ? by_rank_.front()
                                                                                         : nullptr;
}

bool Roster::grow(Sequence& sequence, std::int64_t length) {
  SANGAM_ASSERT(sequence.running, sequence.run.request);
  const std::int64_t more = sequence.pages_for(length) - std::int64_t(sequence.kv.pages.size());
  while (pages_.available().count() < more) {
    Sequence& victim = last_to_leave();
    preempt(victim);
    if (&victim == &sequence) return false;
  }
  pages_.take(sequence.kv, more);
  return true;
}

std::vector<Sequence*> Roster::running(const ModelId& model) {
  std::vector<Sequence*> result;
  for (Sequence* sequence : by_rank_) {
    if (sequence->running && sequence->run.model == model) result.push_back(sequence);
  }
  return result;
}

bool Roster::runs(const ModelId& model) const {
  return std::any_of(by_rank_.begin(), by_rank_.end(), [&](const Sequence* sequence) {
    return sequence->running && sequence->run.model == model;
  });
}

RosterCount Roster::count(const ModelId& model) const {
  RosterCount count;
  std::set<PageId> pages;
  for (const Sequence* sequence : by_rank_) {
    if (sequence->run.model != model) continue;
    ++(sequence->running ? count.running : count.waiting);
    pages.insert(sequence->kv.pages.begin(), sequence->kv.pages.end());
  }
  count.pages = Pages(std::int64_t(pages.size()));
  if (const auto counts = counts_.find(model); counts != counts_.end()) {
    count.preemptions = counts->second.preemptions;
    count.prefix_queries = counts->second.prefix_queries;
    count.prefix_hits = counts->second.prefix_hits;
  }
  return count;
}

Sequence& Roster::last_to_leave() {
  const auto last = std::find_if(by_rank_.rbegin(), by_rank_.rend(), [](const Sequence* sequence) {
    return sequence->running && sequence->sink == nullptr;
  });
  SANGAM_ASSERT(last != by_rank_.rend(), running_, pages_.available());
  return **last;
}

void Roster::preempt(Sequence& sequence) {
  pages_.let_go(sequence.kv);
  sequence.computed = 0;
  sequence.running = false;
  --running_;
  ++counts_[sequence.run.model].preemptions;
}

}  // namespace sangam
