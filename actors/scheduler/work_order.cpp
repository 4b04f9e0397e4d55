// Split and merge, as treaps do it.
#include "actors/scheduler/work_order.hpp"

namespace sangam {
namespace {

/// The finalizer of splitmix64 (Steele, Lea, Flood, 2014): every bit of the result depends on every bit of the value.
std::uint64_t scattered(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace

void WorkOrder::add_up(Place node) {
  Node& own = nodes_[node];
  own.sum = own.own;
  own.sum += sum_of(own.left);
  own.sum += sum_of(own.right);
}

std::pair<WorkOrder::Place, WorkOrder::Place> WorkOrder::split(Place node, const Key& key) {
  if (node == kNone) return {kNone, kNone};
  if (nodes_[node].key < key) {
    const auto [left, right] = split(nodes_[node].right, key);
    nodes_[node].right = left;
    add_up(node);
    return {node, right};
  }
  const auto [left, right] = split(nodes_[node].left, key);
  nodes_[node].left = right;
  add_up(node);
  return {left, node};
}

WorkOrder::Place WorkOrder::merge(Place left, Place right) {
  if (left == kNone) return right;
  if (right == kNone) return left;
  const bool left_is_root = nodes_[left].priority >= nodes_[right].priority;
  const Place root = left_is_root ? left : right;
  if (left_is_root) {
    nodes_[root].right = merge(nodes_[left].right, right);
  } else {
    nodes_[root].left = merge(left, nodes_[right].left);
  }
  add_up(root);
  return root;
}

void WorkOrder::insert(Key key, Tokens tokens) {
  Place place = Place(nodes_.size());
  if (unused_.empty()) {
    nodes_.emplace_back();
  } else {
    place = unused_.back();
    unused_.pop_back();
  }
  const auto n = double(tokens.count());
  const PrefillWork work{1.0, n, n * n};
  nodes_[place] = {key, scattered(key.first ^ scattered(key.second + 1)), work, work};
  const auto [left, right] = split(root_, key);
  root_ = merge(merge(left, place), right);
}

void WorkOrder::erase(Key key) {
  const auto [left, rest] = split(root_, key);
  const auto [own, right] = split(rest, {key.first, key.second + 1});
  if (own != kNone) unused_.push_back(own);
  root_ = merge(left, right);
}

void WorkOrder::clear() {
  nodes_.clear();
  unused_.clear();
  root_ = kNone;
}

PrefillWork WorkOrder::before(Key key) const {
  PrefillWork sum;
  for (Place node = root_; node != kNone;) {
    const Node& own = nodes_[node];
    const bool is_before = own.key < key;
    if (is_before) {
      sum += own.own;
      sum += sum_of(own.left);
    }
    node = is_before ? own.right : own.left;
  }
  return sum;
}

}  // namespace sangam
