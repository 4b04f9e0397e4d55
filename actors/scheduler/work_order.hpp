// Waiting prefills in an order, and the work that stands before a place in it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "actors/scheduler/plan.hpp"

namespace sangam {

/// Prefills as sums over their tokens: what they take on an instance follows from its cost, whatever that becomes.
struct PrefillWork {
  double prefills = 0.0;
  double tokens = 0.0;
  double tokens_squared = 0.0;

  [[nodiscard]] double micros(const PrefillCost& cost) const {
    if (prefills == 0.0) return 0.0;  // Also where the cost is infinite.
    return cost.fixed * prefills + cost.per_token * tokens + cost.per_token_squared * tokens_squared;
  }
  PrefillWork& operator+=(const PrefillWork& other) {
    prefills += other.prefills;
    tokens += other.tokens;
    tokens_squared += other.tokens_squared;
    return *this;
  }
};

/// A treap (Aragon and Seidel, 1989) whose nodes know the sums below them. Its priorities are hashes of the keys: the
/// same calls make the same tree. Every change and every sum costs O(log n).
class WorkOrder {
 public:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  ///< The order, and what makes it unique.

  /// The key must not be there yet.
  void insert(Key key, Tokens tokens);
  /// No error where it is not there.
  void erase(Key key);
  void clear();

  /// Of all that is strictly before the key.
  [[nodiscard]] PrefillWork before(Key key) const;
  [[nodiscard]] PrefillWork all() const { return sum_of(root_); }

 private:
  using Place = std::uint32_t;  // In nodes_.
  static constexpr Place kNone = ~Place{0};

  struct Node {
    Key key;
    std::uint64_t priority = 0;
    PrefillWork own;
    PrefillWork sum;  // Of the node and all below.
    Place left = kNone;
    Place right = kNone;
  };

  [[nodiscard]] PrefillWork sum_of(Place node) const { return node == kNone ? PrefillWork{} : nodes_[node].sum; }
  void add_up(Place node);
  /// What is before the key, and the rest.
  [[nodiscard]] std::pair<Place, Place> split(Place node, const Key& key);
  /// All of `left` is before all of `right`.
  [[nodiscard]] Place merge(Place left, Place right);

  std::vector<Node> nodes_;
  std::vector<Place> unused_;
  Place root_ = kNone;
};

}  // namespace sangam
