// Finds the state of least bytes by the price of damage: for each model the lowest price at which it stays within its
// budget, and then what a price cannot tell, slot by slot.
#pragma once

#include <cstddef>
#include <map>
#include <set>

#include "actors/merger/search/search.hpp"

namespace sangam::merging {

struct PriceSearchOptions {
  double price_least = 1.0;   ///< Bytes a unit of damage.
  double price_most = 1e14;
  int rounds = 14;            ///< Each halves the range of each model's price, on a logarithmic scale.
  int mends_max = 6;          ///< When prices that passed one by one do not pass together.
  int regroupings_max = 24;   ///< Rounds in which whole groups change how they are divided.
  int refinements_max = 24;
  int batch = 8;              ///< Slots of each model, and groups, that are first tried together.
};

/// Predicted damage orders and adds up; whether a model is within its budget is decided by verdicts alone.
///
/// First all models' prices are bisected at once: given the canonicals, models do not touch each other, so this is as
/// many searches in one. What they share couples them: a price may fail that has passed beside other prices of others.
/// It then rises in steps that double. States that pass as a whole are kept. A common price is coarse where forms are few: so groups then
/// change to another variant, and each model's slots to their next cheaper form, by bytes saved for each unit of damage, in
/// batches that double on acceptance and halve on rejection; a single one that is rejected stays as it is.
class PriceSearch final : public Search {
 public:
  /// `options` outlives the search.
  PriceSearch(const PoolOptions& options, const PriceSearchOptions& search);

  std::optional<PoolState> next() override;
  void hear(std::span<const Verdict> verdicts) override;
  [[nodiscard]] const PoolState& best() const override { return best_; }
  [[nodiscard]] std::string phase() const override;

 private:
  enum class Phase : std::uint8_t { bisect, mend, regroup, refine, done };
  struct Range {
    double fails, passes;  // Logarithms of prices.
    double step;           // By how much `passes` rises when it turns out not to pass any more.
  };
  struct Move {
    SiteIndex site = 0;
    SlotForm to;
    double saved = 0.0;  // Bytes,
    double harm = 0.0;   // and damage added.
  };
  /// A whole group in another variant.
  struct Regrouping {
    std::size_t group = 0;
    std::size_t variant = 0;
    std::vector<SlotForm> to;  // By member.
    double saved = 0.0;        // Bytes,
    double harm = 0.0;         // and priced damage added.
  };
  /// What one model tries, and how much of it at once.
  struct Refinement {
    std::vector<Move> tried;
    std::size_t batch = 1;
    bool ended = false;
  };

  [[nodiscard]] Prices prices() const;
  void hear_prices(std::span<const Verdict> verdicts);
  void hear_refinements(std::span<const Verdict> verdicts);
  void keep_if_better(const PoolState& state, std::span<const Verdict> verdicts);
  void begin_regrouping();
  void begin_refining();
  [[nodiscard]] std::vector<Regrouping> regroupings() const;
  [[nodiscard]] Regrouping regrouping(std::size_t group, std::size_t variant, const Prices& prices) const;
  [[nodiscard]] std::optional<PoolState> regrouped();
  void hear_regroupings(std::span<const Verdict> verdicts);
  [[nodiscard]] std::vector<Move> moves_of(std::uint32_t model) const;
  [[nodiscard]] std::optional<PoolState> refined();

  const PoolOptions& options_;
  PriceSearchOptions search_;
  Phase phase_ = Phase::bisect;
  int round_ = 0;
  std::vector<Range> ranges_;
  std::vector<Regrouping> tried_groups_;
  std::size_t group_batch_ = 1;
  std::set<std::pair<std::size_t, std::size_t>> rejected_groups_;  ///< Group and variant.
  std::vector<Refinement> refinements_;
  std::set<std::pair<SiteIndex, SlotForm>> rejected_;
  PoolState proposed_;
  PoolState best_;
  Bytes best_bytes_{};
};

}  // namespace sangam::merging
