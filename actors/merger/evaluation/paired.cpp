// Exact bound by sums over the trinomial distribution; sequential test by a mixture of betting martingales.
#include "actors/merger/evaluation/paired.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

namespace policies = boost::math::policies;
using Policy = policies::policy<policies::promote_double<false>>;
using Binomial = boost::math::binomial_distribution<double, Policy>;

// Share of alpha that pays for the interval of the nuisance; Berger and Boos advise a small one.
constexpr double kNuisanceShare = 0.02;
// Cells of that interval. It is 2 x 3.1 deviations of `won` wide (alpha 0.05), so a cell adds at most 0.03 of them.
constexpr int kCells = 256;
constexpr int kCellStride = 101;  // Coprime with kCells: the worst cell is met early, and few cells need bisection.
constexpr double kDropTolerance = 1e-5;

/// All tables that argue for a drop no greater than the one seen does, for each `won` the greatest `lost`.
/// Tables are ordered by the upper end of the usual interval for a difference of two counts,
/// lost - won + z sqrt(lost + won + 1), which rises with `lost` and, as z < 1 / (sqrt(2) - 1), falls with `won`.
std::vector<std::int64_t> lost_most(const PairedCounts& seen, double alpha) {
  const double z = std::min(2.4, boost::math::quantile(boost::math::normal(), 1.0 - alpha));
  const auto end = [z](std::int64_t lost, std::int64_t won) {
    return double(lost - won) + z * std::sqrt(double(lost + won + 1));
  };
  const double most = end(seen.lost, seen.won) + 1e-9;
  std::vector<std::int64_t> boundary(std::size_t(seen.items) + 1);
  std::int64_t lost = -1;
  for (std::int64_t won = 0; won <= seen.items; ++won) {
    while (lost < seen.items && end(lost + 1, won) <= most) ++lost;
    boundary[std::size_t(won)] = lost;
  }
  return boundary;
}

struct Interval {
  double low;
  double high;
};

/// Clopper and Pearson, 1934.
Interval share_interval(std::int64_t count, std::int64_t items, double alpha) {
  return {Binomial::find_lower_bound_on_p(double(items), double(count), alpha / 2.0),
          Binomial::find_upper_bound_on_p(double(items), double(count), alpha / 2.0)};
}

/// Chance of a table within `boundary` when items are lost and won with these chances, together at most 1. Falls
/// with `lost`, rises with `won`.
double chance_within(const std::vector<std::int64_t>& boundary, double lost, double won) {
  const auto items = std::int64_t(boundary.size()) - 1;
  const Binomial wins(double(items), won);
  // Beyond ten deviations (and ten more items, for the skew of rare events) lies less than 1e-15.
  const double middle = double(items) * won, reach = 10.0 * std::sqrt(middle * (1.0 - won)) + 20.0;
  const auto first = std::max(std::int64_t(0), std::int64_t(middle - reach));
  const auto last = std::min(items, std::int64_t(middle + reach));
  const double lost_of_rest = won < 1.0 ? std::min(1.0, lost / (1.0 - won)) : 0.0;
  double sum = 0.0;
  for (auto count = first; count <= last; ++count) {
    const auto most = boundary[std::size_t(count)];
    if (most < 0) continue;
    const auto rest = items - count;
    const double below = most >= rest ? 1.0 : cdf(Binomial(double(rest), lost_of_rest), double(most));
    sum += pdf(wins, double(count)) * below;
  }
  return sum;
}

/// Whether a drop (as a share) is possible with some chance to win in `cell` and too likely to be refuted. As
/// `chance_within` is monotone in both chances, the cell's corner bounds all of the cell.
bool plausible(const std::vector<std::int64_t>& boundary, const Interval& cell, double drop, double alpha) {
  if (cell.high + drop < 0.0 || 2.0 * cell.low + drop > 1.0) return false;
  const double lost = std::clamp(cell.low + drop, 0.0, 1.0 - cell.high);
  return chance_within(boundary, lost, cell.high) > alpha;
}

// Bets, as shares of the greatest that leaves no debt. Spread over three, a gambler owns at least a third of what the
// best of them would have earned. In simulations at 2 points and 0.5 to 15 % changed outcomes, finer sets decide neither
// earlier nor more often.
constexpr std::array<double, 3> kBets = {0.2, 0.55, 0.95};

/// Logarithm of what a stake of 1 has become, spread over kBets: each item pays `bet` times how far its change lies
/// from `budget`, in the direction `sign`.
double log_capital(const PairedCounts& counts, double budget, double sign) {
  const double stake_most = 1.0 / (1.0 + sign * budget);
  std::array<double, kBets.size()> logs;
  for (std::size_t i = 0; i < kBets.size(); ++i) {
    const double bet = sign * kBets[i] * stake_most;
    logs[i] = double(counts.lost) * std::log1p(bet * (1.0 - budget)) +
              double(counts.won) * std::log1p(bet * (-1.0 - budget)) +
              double(counts.items - counts.lost - counts.won) * std::log1p(bet * -budget);
  }
  const double greatest = *std::max_element(logs.begin(), logs.end());
  double sum = 0.0;
  for (const double log : logs) sum += std::exp(log - greatest);
  return greatest + std::log(sum / double(kBets.size()));
}

DropVerdict judge(const PairedCounts& counts, const DropBudget& budget) {
  const double threshold = -std::log(budget.alpha), drop = budget.points / 100.0;
  if (log_capital(counts, drop, -1.0) >= threshold) return DropVerdict::within;
  if (log_capital(counts, drop, 1.0) >= threshold) return DropVerdict::beyond;
  return DropVerdict::open;
}

}  // namespace

void PairedCounts::note(bool was_right, bool is_right) {
  ++items;
  lost += was_right && !is_right ? 1 : 0;
  won += is_right && !was_right ? 1 : 0;
  right_before += was_right ? 1 : 0;
}

double PairedCounts::drop() const { return items == 0 ? 0.0 : 100.0 * double(lost - won) / double(items); }

PairedCounts count_pairs(const std::vector<bool>& was_right, const std::vector<bool>& is_right) {
  SANGAM_ASSERT(was_right.size() == is_right.size(), was_right.size(), is_right.size());
  PairedCounts counts;
  for (std::size_t i = 0; i < was_right.size(); ++i) counts.note(was_right[i], is_right[i]);
  return counts;
}

double drop_bound(const PairedCounts& counts, double alpha) {
  SANGAM_ASSERT(counts.lost >= 0 && counts.won >= 0 && counts.lost + counts.won <= counts.items, counts.items,
                counts.lost, counts.won);
  SANGAM_ASSERT(alpha > 0.0 && alpha <= 0.5, alpha);
  if (counts.items == 0) return 100.0;
  const double alpha_nuisance = kNuisanceShare * alpha, alpha_table = alpha - alpha_nuisance;
  const auto boundary = lost_most(counts, alpha);
  const auto won = share_interval(counts.won, counts.items, alpha_nuisance);
  const double width = (won.high - won.low) / kCells;
  double upper = -1.0;
  for (int i = 0; i < kCells; ++i) {
    const int at = i * kCellStride % kCells;
    const Interval cell = {won.low + width * at, won.low + width * (at + 1)};
    if (!plausible(boundary, cell, std::max(upper, -cell.high), alpha_table)) continue;
    double low = std::max(upper, -cell.high), high = 1.0;
    while (high - low > kDropTolerance) {
      const double middle = (low + high) / 2.0;
      (plausible(boundary, cell, middle, alpha_table) ? low : high) = middle;
    }
    upper = high;
  }
  return 100.0 * upper;
}

SequentialDropTest::SequentialDropTest(const DropBudget& budget) : budget_(budget) {
  SANGAM_ASSERT(budget.points >= 0.0 && budget.points < 100.0, budget.points);
  SANGAM_ASSERT(budget.alpha > 0.0 && budget.alpha < 1.0, budget.alpha);
}

DropVerdict SequentialDropTest::note(bool was_right, bool is_right) {
  counts_.note(was_right, is_right);
  if (verdict_ == DropVerdict::open) verdict_ = judge(counts_, budget_);
  return verdict_;
}

}  // namespace sangam::merging
