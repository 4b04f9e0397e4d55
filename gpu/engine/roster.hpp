// All live sequences of an engine in the order of their rank, and who of them holds pages.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "gpu/engine/sequence.hpp"

namespace sangam {

/// What one model's sequences are doing.
struct RosterCount {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  Pages pages{};                     ///< A page that several use is one page.
  std::uint64_t preemptions = 0;     ///< Since the start, as the following counts.
  std::uint64_t prefix_queries = 0;  ///< Tokens that a first admission looked up in the prefix cache,
  std::uint64_t prefix_hits = 0;     ///< and found.
};

/// Sequences are admitted strictly by rank, with pages for all tokens that they have, and lose them only to
/// one that ranks before them; those with a sink do not lose them. Of these pages only those must be had that
/// the prefix cache has not. A preempted sequence computes again what the cache has lost meanwhile, to the
/// same bits.
class Roster {
 public:
  /// `running_max`: how many sequences may hold pages at once.
  Roster(KvPages& pages, std::int64_t running_max);
  ~Roster();
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;

  /// The request must not be there yet. Waits from now on, unless it comes running, with its pages.
  void add(Sequence sequence);
  /// Gives its pages back. False where it is not known.
  bool remove(RequestId request);
  /// Leaves with its pages. It must be there.
  [[nodiscard]] Sequence take(RequestId request);
  /// This many places stay free for requests that are expected; `could_expect` one more with so many pages.
  void keep_free(std::int64_t places) { kept_free_ = places; }
  [[nodiscard]] bool could_expect(std::int64_t pages) const;
  [[nodiscard]] bool contains(RequestId request) const { return sequences_.contains(request); }
  [[nodiscard]] bool empty() const { return by_rank_.empty(); }

  /// Lets in who is first in rank, as far as places and pages reach.
  void admit();
  /// The first in rank, if it waits though nobody holds any pages: it never will have them.
  [[nodiscard]] const Sequence* hopeless() const;
  /// Makes room for `length` tokens. False: nobody who ranks after it has a page left, so it waits again.
  [[nodiscard]] bool grow(Sequence& sequence, std::int64_t length);

  /// In the order of rank.
  [[nodiscard]] std::vector<Sequence*> running(const ModelId& model);
  [[nodiscard]] bool runs(const ModelId& model) const;
  [[nodiscard]] RosterCount count(const ModelId& model) const;

 private:
  struct Counts {
    std::uint64_t preemptions = 0;
    std::uint64_t prefix_queries = 0;
    std::uint64_t prefix_hits = 0;
  };

  [[nodiscard]] std::int64_t places() const { return running_max_ - kept_free_; }
  /// The last of those that may be preempted; there must be one.
  [[nodiscard]] Sequence& last_to_leave();
  [[nodiscard]] bool has_place(const Sequence& sequence) const;
  [[nodiscard]] bool has_pages(const Sequence& sequence) const;
  void sort_by_rank();
  void enter(Sequence& sequence);
  void preempt(Sequence& sequence);

  KvPages& pages_;
  std::int64_t running_max_;
  std::int64_t running_ = 0;
  std::int64_t kept_free_ = 0;  ///< Of the places.
  std::unordered_map<RequestId, Sequence> sequences_;
  std::vector<Sequence*> by_rank_;
  std::uint64_t changes_ = 0;  ///< Of place.
  std::unordered_map<ModelId, Counts> counts_;
};

}  // namespace sangam
