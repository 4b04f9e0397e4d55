// Plays the moves on a picture of the workers: what has room comes; when nothing has, one gives way.
#include "actors/placement/moves.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

using Items = std::vector<ItemIndex>;

bool has(const Items& items, ItemIndex item) { return std::find(items.begin(), items.end(), item) != items.end(); }

struct Arrival {
  BinIndex bin = 0;
  std::size_t position = 0;  ///< In target[bin].
};

class Course {
 public:
  Course(const PackingProblem& problem, const Packing& present, const Packing& target)
      : problem_(problem), there_(present), target_(target), is_up_(problem.items.size(), false) {
    there_.resize(target.size());
    for (BinIndex b = 0; b < target.size(); ++b) {
      steps_.emplace_back(target[b].size(), 0);
      for (std::size_t p = 0; p < target[b].size(); ++p) {
        if (has(there_[b], target[b][p])) {
          is_up_[target[b][p]] = true;
        } else {
          waiting_.push_back({b, p});
        }
      }
    }
  }

  Steps run() {
    for (std::int64_t step = 1; !waiting_.empty(); ++step) {
      drop_replaced();
      if (!bring_what_fits(step)) {
        make_way();
        const bool has_come = bring_what_fits(step);
        SANGAM_ASSERT(has_come, waiting_.size(), step);
      }
    }
    return steps_;
  }

 private:
  [[nodiscard]] bool fits(BinIndex bin, ItemIndex more) const {
    Items items = there_[bin];
    items.push_back(more);
    return load_of(problem_, problem_.bins[bin], items)[0] <= 1.0 + 2 * kRounding;
  }

  /// Copies whose item is up where it belongs.
  void drop_replaced() {
    for (BinIndex b = 0; b < there_.size(); ++b) {
      std::erase_if(there_[b], [&](ItemIndex item) { return is_up_[item] && !has(target_[b], item); });
    }
  }

  bool bring_what_fits(std::int64_t step) {
    std::vector<Arrival> came;
    std::erase_if(waiting_, [&](const Arrival& arrival) {
      const ItemIndex item = target_[arrival.bin][arrival.position];
      if (!fits(arrival.bin, item)) return false;
      there_[arrival.bin].push_back(item);
      steps_[arrival.bin][arrival.position] = step;
      came.push_back(arrival);
      return true;
    });
    for (const Arrival& arrival : came) is_up_[target_[arrival.bin][arrival.position]] = true;
    return !came.empty();
  }

  /// What has to leave `arrival`'s bin before it fits, the least loaded first.
  [[nodiscard]] Items in_the_way(const Arrival& arrival) const {
    Items leavers;
    for (const ItemIndex item : there_[arrival.bin]) {
      if (!has(target_[arrival.bin], item)) leavers.push_back(item);
    }
    std::sort(leavers.begin(), leavers.end(), [&](ItemIndex a, ItemIndex b) {
      return problem_.items[a].own[1] + problem_.items[a].own[2] < problem_.items[b].own[1] + problem_.items[b].own[2];
    });
    Items stay = there_[arrival.bin];
    stay.push_back(target_[arrival.bin][arrival.position]);
    Items gone;
    for (const ItemIndex item : leavers) {
      if (load_of(problem_, problem_.bins[arrival.bin], stay)[0] <= 1.0 + 2 * kRounding) break;
      stay.erase(std::find(stay.begin(), stay.end(), item));
      gone.push_back(item);
    }
    return gone;
  }

  /// Of all arrivals, for the one that fewest, then least loaded, have to give way to.
  void make_way() {
    const auto load = [&](const Items& items) {
      double sum = 0.0;
      for (const ItemIndex item : items) sum += 1.0 + problem_.items[item].own[1] + problem_.items[item].own[2];
      return sum;
    };
    Items least = in_the_way(waiting_.front());
    BinIndex bin = waiting_.front().bin;
    for (const Arrival& arrival : waiting_) {
      Items others = in_the_way(arrival);
      if (load(others) >= load(least)) continue;
      least = std::move(others);
      bin = arrival.bin;
    }
    for (const ItemIndex item : least) there_[bin].erase(std::find(there_[bin].begin(), there_[bin].end(), item));
  }

  const PackingProblem& problem_;
  Packing there_;
  const Packing& target_;
  std::vector<bool> is_up_;
  std::vector<Arrival> waiting_;
  Steps steps_;
};

}  // namespace

Steps steps_between(const PackingProblem& problem, const Packing& present, const Packing& target) {
  return Course(problem, present, target).run();
}

}  // namespace sangam
