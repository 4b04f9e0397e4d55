// Three-dimensional packing of models into workers: what a set of models needs, and where one more fits best.
// Source: Janus, its steady pool; the union of weights is ours.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace sangam {

/// Shares of one worker: HBM, compute, bandwidth.
using Shares = std::array<double, 3>;
using ItemIndex = std::uint32_t;
using BinIndex = std::uint32_t;
using KindIndex = std::uint32_t;
constexpr BinIndex kNoBin = std::numeric_limits<BinIndex>::max();
constexpr std::uint32_t kNoFamily = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kNoModel = std::numeric_limits<std::uint32_t>::max();

/// Sums of shares are compared with this much room for rounding.
constexpr double kRounding = 1e-9;

/// How unbalanced x is: Phi(x) = |x|_2^2 - |x|_1^2 / 3, the squared length of x' = x - (|x|_1 / 3) 1. A worker's
/// load and its residual have the same.
[[nodiscard]] double potential(const Shares& x);

/// <r', v'>. Putting v where r is free changes the potential by Phi(v) - 2 <r', v'>.
[[nodiscard]] double alignment(const Shares& residual, const Shares& v);

/// One instance of a model. HBM counts in shares of the largest pool among the workers.
struct Item {
  Shares own{};  ///< HBM: KV, and the weights that no other item could share.
  std::vector<std::uint32_t> pieces;    ///< Of PackingProblem::pieces, ascending.
  std::uint32_t family = kNoFamily;     ///< Only items of one family have pieces in common.
  double weights = 0.0;                 ///< HBM of all its weights: what a move of it copies.
  double rate = 0.0;                    ///< Tokens per second.
  BinIndex home = kNoBin;               ///< Where it is now.
  std::uint32_t model = kNoModel;       ///< Equal for instances of one model.
};

/// What distinguishes workers as bins.
struct BinKind {
  double hbm_scale = 1.0;   ///< The largest pool over this kind's.
  std::vector<bool> holds;  ///< By item: whether these workers know the model. Empty: all.
};

struct PackingProblem {
  std::vector<Item> items;
  std::vector<double> pieces;   ///< HBM of groups of segments that the same items have.
  std::vector<BinKind> kinds;
  std::vector<KindIndex> bins;  ///< The kind of each worker that may be taken, in the order to take them.
  std::vector<int> ranks;       ///< By bin, rising: among equals an item takes its home. Empty: all are equal.
  std::size_t models_max = 4;   ///< In one bin.

  [[nodiscard]] bool holds(KindIndex kind, ItemIndex item) const {
    return kinds[kind].holds.empty() || kinds[kind].holds[item];
  }
};

/// The items of each bin.
using Packing = std::vector<std::vector<ItemIndex>>;

/// What the items need together on a worker of this kind: sums, with the union of their pieces. The definition.
[[nodiscard]] Shares load_of(const PackingProblem& problem, KindIndex kind, std::span<const ItemIndex> items);

/// How a bin is chosen among those in use that have room. Ties go to the item's home, then to the earlier bin.
enum class FitRule : std::uint8_t {
  aligned,  ///< Largest <r', v'>, and what is saved of v: lowers the potential most.
  dot,      ///< Largest <r, v> (Panigrahy et al., 2011).
  tight,    ///< Least residual afterwards.
  first,    ///< The earliest.
};

/// Bins that fill and empty. A bin's load is a function of what is in it, not of what has been there: there is
/// no drift.
class Bins {
 public:
  explicit Bins(const PackingProblem& problem);
  Bins(const PackingProblem& problem, const Packing& packing);

  [[nodiscard]] const PackingProblem& problem() const { return *problem_; }
  [[nodiscard]] const Packing& packing() const { return packing_; }
  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::uint64_t evaluations() const { return evaluations_; }  ///< Of (item, bin), so far.

  [[nodiscard]] const Shares& residual(BinIndex bin) const { return states_[bin].residual; }
  /// What the item needs beside what the bin has of it.
  [[nodiscard]] Shares marginal(BinIndex bin, ItemIndex item) const;
  [[nodiscard]] bool fits(BinIndex bin, ItemIndex item) const;
  [[nodiscard]] bool is_over(BinIndex bin) const;
  /// Phi of the load; 0 of an empty bin.
  [[nodiscard]] double potential_of(BinIndex bin) const { return potential(states_[bin].residual); }
  /// rho = Phi(residual) / sum of Phi(items): low where they complement each other. 0 where nothing is skewed.
  [[nodiscard]] double damage(BinIndex bin) const;

  /// The best bin in use but `but` that has room for the item.
  [[nodiscard]] std::optional<BinIndex> choose(ItemIndex item, FitRule rule, BinIndex but = kNoBin);
  /// The first bin not in use that has room for it; its home, if that is one of the same rank.
  [[nodiscard]] std::optional<BinIndex> unused_for(ItemIndex item) const;
  void put(BinIndex bin, ItemIndex item);
  void take(BinIndex bin, ItemIndex item);

 private:
  struct State {
    Shares residual{1.0, 1.0, 1.0};
    KindIndex kind = 0;
  };

  [[nodiscard]] Shares need(KindIndex kind, ItemIndex item) const;
  [[nodiscard]] bool relates(BinIndex bin, ItemIndex item) const;
  void count_open(BinIndex bin);

  const PackingProblem* problem_;
  Packing packing_;
  std::vector<State> states_;
  std::vector<double> alone_;    // By item: HBM of all its pieces.
  std::vector<BinIndex> open_;   // In use and not full; ascending.
  std::vector<bool> is_open_;
  std::vector<std::vector<BinIndex>> family_bins_;  // By family: bins that have one of it.
  std::size_t used_ = 0;
  std::uint64_t evaluations_ = 0;
};

}  // namespace sangam
