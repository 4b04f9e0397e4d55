// Which models belong to the steady pool: those that need a small part of a worker and come evenly. The others
// are the autoscaler's.
#pragma once

#include <map>
#include <optional>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// The thresholds are ours: Janus names size and volatility, but no values.
struct PoolOptions {
  /// A model enters while it needs at most this share of one worker, and leaves above the second: from there on a
  /// second worker may soon be needed, which only the elastic pool gives.
  double size_enter = 0.5;
  double size_leave = 0.7;
  /// The same for the peak over the mean of its token rate.
  double volatility_enter = 3.0;
  double volatility_leave = 5.0;
  /// Whose peak (size times volatility) needs at most this share counts as even: others have room for it.
  double peak_small = 0.1;
  /// And it must be on time: on one worker to itself this share of its tokens before it enters, and the second on the
  /// one that it shares; whoever leaves because others made it late does not come back for a while.
  double attainment_enter = 0.995;
  double attainment_leave = 0.98;
  Millis late_away{300'000};
  Millis enter_dwell{10'000};  ///< So long a model must look steady before it enters,
  Millis leave_dwell{2'000};   ///< and so long it must not before it leaves: more workers are urgent, fewer are not.
  Millis idle_leave{60'000};   ///< Without a request for so long it is in no pool.
};

/// How a model's traffic looks at an instant.
struct ModelTraffic {
  double size = 0.0;        ///< Share of one worker that it needs.
  double volatility = 1.0;  ///< Peak over mean.
  bool is_idle = false;     ///< No request in the window.
  double attainment = 1.0;  ///< Share of tokens on time that one worker gives it.
};

class SteadyPool {
 public:
  explicit SteadyPool(PoolOptions options) : options_(options) {}

  /// Counts `model` in without dwell: it was a member before a restart.
  void restore(const ModelId& model, Instant now);
  /// True if the model entered or left. A model that was seen before counts as idle while it is not seen.
  bool see(const ModelId& model, const ModelTraffic& traffic, Instant now);

  [[nodiscard]] bool holds(const ModelId& model) const;

 private:
  struct Member {
    bool is_in = false;
    std::optional<Instant> unlike_since;  ///< Since when it looks as if it belonged to the other side.
    Instant busy_at{};                    ///< When it was last not idle.
    Instant away_until{};
  };

  [[nodiscard]] bool looks_steady(const Member& member, const ModelTraffic& traffic, Instant now) const;
  [[nodiscard]] bool is_late(const Member& member, const ModelTraffic& traffic) const;

  PoolOptions options_;
  std::map<ModelId, Member> members_;
};

}  // namespace sangam
