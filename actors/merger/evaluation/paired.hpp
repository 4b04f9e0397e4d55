// Statistics of paired outcomes: the same items scored before and after a change. Only items whose outcome changed
// inform about the drop; items count as independent draws from the task. A point is a hundredth of all items.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sangam::merging {

/// What became of single items; those neither lost nor won are as right or wrong after as before.
struct PairedCounts {
  std::int64_t items = 0;
  std::int64_t lost = 0;  ///< Right before, wrong after.
  std::int64_t won = 0;   ///< Wrong before, right after.
  std::int64_t right_before = 0;

  void note(bool was_right, bool is_right);
  /// Share right before less share right after in points, from -100 to 100; 0 without items.
  [[nodiscard]] double drop() const;
};

/// Of two lists that hold the same items in the same order.
[[nodiscard]] PairedCounts count_pairs(const std::vector<bool>& was_right, const std::vector<bool>& is_right);

/// What the true drop does not exceed with a certainty of at least 1 - alpha, in points: of all tables (lost, won) the
/// share that argues for a drop as small as the one seen is summed from the trinomial distribution itself, whatever
/// the share of changed items may be (Buehler, 1957, with the nuisance held in a confidence interval as by Berger and
/// Boos, 1994). Good for counts that were fixed before looking; alpha in (0, 0.5]. 100 where nothing is known.
/// Takes milliseconds with a dozen of changed items, and a second with thousands.
[[nodiscard]] double drop_bound(const PairedCounts& counts, double alpha);

/// The sequential test's verdict.
enum class DropVerdict : std::uint8_t {
  open,    ///< More items are needed.
  within,  ///< The drop is at most the budget.
  beyond,  ///< It is more.
};

struct DropBudget {
  double points = 2.0;  ///< In [0, 100).
  double alpha = 0.05;  ///< In (0, 1): the chance, over all items ever noted, of a verdict that is wrong.
};

/// Tests the drop item by item and may stop at any of them: two gamblers bet against "more than the budget" and
/// "within the budget", each spreading its stake over a few constant bets; who owns 1 / alpha times the stake has
/// refuted its hypothesis (Ville, 1939; Waudby-Smith and Ramdas, 2024, section 4). What they own depends on the counts
/// alone, not on the order of items.
class SequentialDropTest {
 public:
  explicit SequentialDropTest(const DropBudget& budget);

  /// The first verdict stays.
  DropVerdict note(bool was_right, bool is_right);

  [[nodiscard]] DropVerdict verdict() const { return verdict_; }
  [[nodiscard]] const PairedCounts& counts() const { return counts_; }

 private:
  DropBudget budget_;
  PairedCounts counts_;
  DropVerdict verdict_ = DropVerdict::open;
};

}  // namespace sangam::merging
