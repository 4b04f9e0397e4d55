// The pool, its caches, what gives way, and the segments, once more in the obvious way: sets of page numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "gpu/memory/page_state.hpp"

namespace sangam::testing {

using NaivePages = std::set<std::int64_t>;

struct NaiveModel {
  NaivePages kv;
  NaivePages spare;                ///< Of its page cache.
  std::deque<std::int64_t> shelf;  ///< Of a prefix cache; the front gives way first.
  std::int64_t drawn = 0;
  std::int64_t drawn_most = 0;
  std::int64_t low = 0;
  std::uint64_t last_used = 0;
};

class NaiveMemory {
 public:
  NaiveMemory(std::int64_t pages, std::size_t models) : models(models) {
    for (std::int64_t page = 0; page < pages; ++page) free.insert(page);
  }

  /// Of spare pages any may come; -1 tells that one of them does. -2: none at all.
  std::int64_t expected_take(std::size_t m) {
    NaiveModel& model = models[m];
    model.drawn_most = std::max(model.drawn_most, ++model.drawn);
    if (model.spare.empty() && free.empty()) reclaim(1, m, true);
    if (model.spare.empty() && free.empty()) return -2;
    model.last_used = ++uses;
    return model.spare.empty() ? *free.begin() : -1;
  }

  void tend(std::size_t m) {
    NaiveModel& model = models[m];
    model.low = std::max(model.drawn_most, model.low - std::max<std::int64_t>(1, model.low / 8));
    model.drawn = model.drawn_most = 0;
    while (std::int64_t(model.spare.size()) < model.low) {
      if (free.empty()) reclaim(1, m, false);
      if (free.empty()) return;
      model.last_used = ++uses;
      model.spare.insert(*free.begin());
      free.erase(free.begin());
    }
    while (std::int64_t(model.spare.size()) > 2 * model.low) shed(model);
  }

  std::int64_t available() const {
    std::int64_t pages = std::int64_t(free.size());
    for (const NaiveModel& model : models) pages += std::int64_t(model.spare.size() + model.shelf.size());
    return pages;
  }

  /// Each model's cache, then its shelf, stand in one line; idle models first, then the longest unused.
  void reclaim(std::int64_t wanted, std::size_t taker, bool live) {
    std::vector<std::size_t> order(models.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const bool a_idle = models[a].kv.empty();
      const bool b_idle = models[b].kv.empty();
      return a_idle != b_idle ? a_idle : models[a].last_used < models[b].last_used;
    });
    // Who is idle does not change meanwhile: no live page is touched.
    for (const std::size_t m : order) {
      if (!live && (m == taker || !models[m].kv.empty())) continue;
      for (; wanted > 0 && !models[m].spare.empty(); --wanted) shed(models[m]);
      for (; wanted > 0 && !models[m].shelf.empty(); --wanted) {
        free.insert(models[m].shelf.front());
        models[m].shelf.pop_front();
      }
    }
  }

  /// What a reservation of so many pages leaves to be had, or false.
  bool make_free(std::int64_t count) {
    if (available() < count) return false;
    reclaim(count - std::int64_t(free.size()), models.size(), true);
    return true;
  }

  /// The longest run of free pages.
  std::int64_t longest() const {
    std::int64_t longest = 0;
    std::int64_t run = 0;
    std::int64_t before = -2;
    for (const std::int64_t page : free) {
      run = page == before + 1 ? run + 1 : 1;
      longest = std::max(longest, run);
      before = page;
    }
    return longest;
  }

  NaivePages free;
  NaivePages reserved;
  std::map<std::int64_t, std::int64_t> weights;  ///< Page to how many hold it.
  std::vector<NaiveModel> models;
  std::uint64_t uses = 0;

 private:
  void shed(NaiveModel& model) {
    free.insert(*model.spare.rbegin());
    model.spare.erase(std::prev(model.spare.end()));
  }
};

}  // namespace sangam::testing
