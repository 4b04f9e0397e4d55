// What clients ask of one model: rates and lengths over sliding windows of its queue's counts.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// The six features of Janus (its section on forecasting): rates a second, lengths in tokens.
struct Traffic {
  double input_tokens_per_second = 0.0;
  double requests_per_second = 0.0;
  double input_mean = 0.0;
  double input_variance = 0.0;
  double output_mean = 0.0;
  double output_variance = 0.0;
  /// How many requests come together: variance over mean of the counts of letters, 1 where they come at random.
  double peakedness = 1.0;
};

/// Sums of one model since the oracle's start; differences over time are its traffic.
struct TrafficTotals {
  Instant at{};
  double arrived = 0.0;
  double input = 0.0;
  double input_squared = 0.0;
  double ended = 0.0;
  double output = 0.0;
  double output_squared = 0.0;
  double fast_rate = 0.0;  ///< Prompt tokens a second, over the short window before; 0 until there is one.
  double changes = 0.0;  ///< Half the squared differences of the counts of successive letters,
  double counted = 0.0;  ///< and these counts.
};

/// Sums the differences between a queue's letters: a lost letter delays counts by one interval, a late one changes
/// nothing, a restarted queue counts from its first letter on.
class TrafficWindows {
 public:
  struct Lengths {
    Millis fast{}, slow{}, past{};
  };

  TrafficWindows(Lengths windows, double output_mean) : windows_(windows), output_prior_(output_mean) {}

  void on(const QueueStatus& status);
  /// The queue is gone or new: its next letter is a new beginning.
  void forget_queue() { has_letter_ = false; }
  /// Remembers the sums as those of `now`; to be called at even distances.
  void tick(Instant now);

  /// Rates of the last `window`, or of all that is remembered if that is less; zero without two ticks.
  [[nodiscard]] Traffic over(Millis window) const;
  [[nodiscard]] Traffic between(Instant from, Instant to) const;
  /// The traffic to plan for: the longest window whose rate the shorter ones do not contradict, so that noise is
  /// averaged away and a jump is followed at once.
  [[nodiscard]] Traffic believed() const;
  /// Largest token rate of a short window over the mean, in the longest window; 1 while nothing comes.
  [[nodiscard]] double volatility() const;

  /// Of the longest window, from differences of successive letters (von Neumann, 1941): a slow change of the rate is no
  /// burst, nor is a letter that was late or lost. At least 1, and 1 while little has come.
  [[nodiscard]] double peakedness() const;

  [[nodiscard]] double arrived() const { return totals_.arrived; }

 private:
  [[nodiscard]] const TrafficTotals& at(Instant time) const;
  [[nodiscard]] double fast_rate() const;
  /// Whether the last `part` of `whole` saw another rate than the rest, beyond the chance of a Poisson process.
  [[nodiscard]] bool contradicts(Millis part, Millis whole) const;
  [[nodiscard]] Traffic of(const TrafficTotals& from, const TrafficTotals& to) const;

  Lengths windows_;
  double output_prior_;
  QueueStatus letter_;  // The last one that counted.
  bool has_letter_ = false;
  std::optional<double> count_;  // Of requests between the last two letters, if none was lost between them.
  std::uint64_t late_sequence_ = 0;
  int late_letters_ = 0;  // In a row, each above the one before: a queue that has begun anew.
  TrafficTotals totals_;
  std::deque<TrafficTotals> ticks_;  // The oldest first, not further back than `past`.
};

}  // namespace sangam
