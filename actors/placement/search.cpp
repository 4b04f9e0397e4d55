// Greedy passes, and ruin and recreate on the best of them.
#include "actors/placement/search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace sangam {
namespace {

using Order = std::vector<ItemIndex>;

/// Bins that one shake packs anew.
constexpr std::size_t kShakenMax = 4;

double hbm_alone(const PackingProblem& problem, const Item& item) {
  double hbm = item.own[0];
  for (const std::uint32_t piece : item.pieces) hbm += problem.pieces[piece];
  return hbm;
}

std::vector<Shares> needs_of(const PackingProblem& problem) {
  std::vector<Shares> needs;
  for (const Item& item : problem.items) needs.push_back({hbm_alone(problem, item), item.own[1], item.own[2]});
  return needs;
}

/// How large an item is, where scarce shares weigh more: weights are the mean needs (Panigrahy et al., 2011).
std::vector<double> scarcity_sizes(const std::vector<Shares>& needs) {
  Shares mean{};
  for (const Shares& need : needs) {
    for (std::size_t d = 0; d < need.size(); ++d) mean[d] += need[d] / double(needs.size());
  }
  std::vector<double> sizes;
  for (const Shares& need : needs) sizes.push_back(need[0] * mean[0] + need[1] * mean[1] + need[2] * mean[2]);
  return sizes;
}

Order decreasing(const std::vector<double>& sizes) {
  Order order(sizes.size());
  std::iota(order.begin(), order.end(), ItemIndex{0});
  std::stable_sort(order.begin(), order.end(), [&](ItemIndex a, ItemIndex b) { return sizes[a] > sizes[b]; });
  return order;
}

std::vector<double> largest_shares(const std::vector<Shares>& needs) {
  std::vector<double> sizes;
  for (const Shares& need : needs) sizes.push_back(*std::max_element(need.begin(), need.end()));
  return sizes;
}

/// By largest share, by sum, by scarcity, and family after family, each by largest share.
std::vector<Order> orders_of(const PackingProblem& problem) {
  const std::vector<Shares> needs = needs_of(problem);
  const std::vector<double> largest = largest_shares(needs);
  std::vector<double> sums;
  for (const Shares& need : needs) sums.push_back(need[0] + need[1] + need[2]);
  std::vector<Order> orders{decreasing(largest), decreasing(sums), decreasing(scarcity_sizes(needs))};
  const auto family_of = [&](ItemIndex i) { return problem.items[i].family; };
  if (std::any_of(problem.items.begin(), problem.items.end(), [](const Item& i) { return i.family != kNoFamily; })) {
    orders.push_back(orders.front());
    std::stable_sort(orders.back().begin(), orders.back().end(),
                     [&](ItemIndex a, ItemIndex b) { return family_of(a) < family_of(b); });
  }
  return orders;
}

Bins greedy(const PackingProblem& problem, const Order& order, FitRule rule) {
  Bins bins(problem);
  for (const ItemIndex item : order) {
    std::optional<BinIndex> bin = bins.choose(item, rule);
    if (!bin) bin = bins.unused_for(item);
    if (bin) bins.put(*bin, item);
  }
  return bins;
}

std::size_t placed(const Packing& packing) {
  std::size_t count = 0;
  for (const auto& items : packing) count += items.size();
  return count;
}

/// More items placed, then fewer bins.
bool is_better(const Bins& a, const Bins& b) {
  const std::size_t placed_a = placed(a.packing());
  const std::size_t placed_b = placed(b.packing());
  return placed_a != placed_b ? placed_a > placed_b : a.used() < b.used();
}

/// Looks for a packing of the same items with a bin less, and so on.
class RuinAndRecreate {
 public:
  RuinAndRecreate(const Bins& start, std::uint64_t effort)
      : bins_(start), best_(start), effort_(effort), sizes_(scarcity_sizes(needs_of(start.problem()))) {}

  Packing run() {
    const std::size_t least = bins_min(bins_.problem());
    while (bins_.used() > std::max<std::size_t>(least, 1) && eliminate_bin()) best_ = bins_;
    return best_.packing();
  }

 private:
  using Taken = std::vector<std::pair<BinIndex, ItemIndex>>;

  /// True if the items of one bin have found room in the others.
  bool eliminate_bin() {
    clear_emptiest();
    settle_left();
    while (!left_.empty() && spent() < effort_) {
      if (shake()) settle_left();
    }
    return left_.empty();
  }

  void settle_left() {
    for (const ItemIndex item : Order(left_)) {
      if (const auto bin = bins_.choose(item, FitRule::tight)) settle(*bin, item);
    }
  }

  [[nodiscard]] std::uint64_t spent() const { return bins_.evaluations() + spent_; }

  void clear_emptiest() {
    BinIndex emptiest = kNoBin;
    double least = 0.0;
    for (BinIndex b = 0; b < bins_.packing().size(); ++b) {
      const auto& items = bins_.packing()[b];
      if (items.empty()) continue;
      const double size = std::accumulate(items.begin(), items.end(), 0.0,
                                          [&](double sum, ItemIndex i) { return sum + sizes_[i]; });
      if (emptiest == kNoBin || size < least) {
        emptiest = b;
        least = size;
      }
    }
    left_ = bins_.packing()[emptiest];
    for (const ItemIndex item : left_) bins_.take(emptiest, item);
    used_.clear();
    for (BinIndex b = 0; b < bins_.packing().size(); ++b) {
      if (!bins_.packing()[b].empty()) used_.push_back(b);
    }
  }

  void settle(BinIndex bin, ItemIndex item) {
    bins_.put(bin, item);
    left_.erase(std::find(left_.begin(), left_.end(), item));
  }

  [[nodiscard]] double left_size() const {
    return std::accumulate(left_.begin(), left_.end(), 0.0, [&](double s, ItemIndex i) { return s + sizes_[i]; });
  }

  /// Packs two to four bins and what is left anew; a result that leaves more is undone, but for a little. True if
  /// it stays.
  bool shake() {
    for (std::size_t i = 0; i < kShakenMax && i < used_.size(); ++i) {
      std::swap(used_[i], used_[i + random_() % (used_.size() - i)]);
    }
    const std::size_t count = std::min<std::size_t>(used_.size(), 2 + random_() % (kShakenMax - 1));
    const std::span<const BinIndex> chosen(used_.data(), count);
    const Order left_before = left_;
    const double size_before = left_size();
    Taken before;
    for (const BinIndex bin : chosen) {
      for (const ItemIndex item : Order(bins_.packing()[bin])) {
        before.emplace_back(bin, item);
        bins_.take(bin, item);
        left_.push_back(item);
      }
    }
    recreate(chosen);
    const double slack = random_() % 16 == 0 ? 0.05 : 1e-12;
    if (left_size() <= size_before * (1.0 + slack)) return true;
    for (const BinIndex bin : chosen) {
      for (const ItemIndex item : Order(bins_.packing()[bin])) bins_.take(bin, item);
    }
    for (const auto& [bin, item] : before) bins_.put(bin, item);
    left_ = left_before;
    return false;
  }

  void recreate(std::span<const BinIndex> chosen) {
    std::vector<std::pair<double, ItemIndex>> order;
    for (const ItemIndex item : left_) order.emplace_back(sizes_[item] * (0.7 + 0.6 * draw()), item);
    std::sort(order.rbegin(), order.rend());
    for (const auto& [size, item] : order) {
      BinIndex best = kNoBin;
      double best_score = 0.0;
      for (const BinIndex bin : chosen) {
        ++spent_;
        if (!bins_.fits(bin, item)) continue;
        const double score = alignment(bins_.residual(bin), bins_.marginal(bin, item)) + 0.1 * draw();
        if (best != kNoBin && score <= best_score) continue;
        best = bin;
        best_score = score;
      }
      if (best != kNoBin) settle(best, item);
    }
  }

  /// In [0, 1).
  double draw() { return double(random_() >> 11) * 0x1.0p-53; }

  Bins bins_;
  Bins best_;
  std::uint64_t effort_;
  std::vector<double> sizes_;
  std::vector<BinIndex> used_;
  Order left_;
  std::uint64_t spent_ = 0;
  std::mt19937_64 random_{1};  // NOLINT: the same search every time is meant.
};

}  // namespace

std::size_t bins_min(const PackingProblem& problem) {
  Shares total{};
  std::vector<bool> counted(problem.pieces.size(), false);
  std::size_t count = 0;
  const Bins bins(problem);
  for (ItemIndex i = 0; i < problem.items.size(); ++i) {
    if (!bins.unused_for(i)) continue;
    ++count;
    for (std::size_t d = 0; d < total.size(); ++d) total[d] += problem.items[i].own[d];
    for (const std::uint32_t piece : problem.items[i].pieces) {
      if (!counted[piece]) total[0] += problem.pieces[piece];
      counted[piece] = true;
    }
  }
  const double largest = *std::max_element(total.begin(), total.end());
  const std::size_t by_count = (count + problem.models_max - 1) / problem.models_max;
  return std::max(by_count, std::size_t(std::ceil(largest - kRounding * double(count + 1))));
}

Packing first_fit_decreasing(const PackingProblem& problem) {
  return greedy(problem, decreasing(largest_shares(needs_of(problem))), FitRule::first).packing();
}

Packing pack_anew(const PackingProblem& problem, std::uint64_t effort) {
  const std::size_t least = bins_min(problem);
  std::optional<Bins> best;
  std::uint64_t spent = 0;
  for (const FitRule rule : {FitRule::aligned, FitRule::tight, FitRule::dot, FitRule::first}) {
    for (const Order& order : orders_of(problem)) {
      if (best && (spent >= effort || best->used() <= least)) break;
      const Bins bins = greedy(problem, order, rule);
      spent += bins.evaluations();
      if (!best || is_better(bins, *best)) best.emplace(bins);
    }
  }
  if (spent >= effort || best->used() <= least) return best->packing();
  return RuinAndRecreate(*best, effort - spent + best->evaluations()).run();
}

}  // namespace sangam
