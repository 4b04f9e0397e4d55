// What a model's clients want: the deadlines and lengths of its latest requests.
#pragma once

#include <cstddef>
#include <vector>

#include "actors/oracle/worker_costs.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// A part of the requests, with what its members have in the mean; seconds, 0: no such deadline.
struct PromiseGroup {
  double share = 0.0;
  double input = 0.0;
  double ttft = 0.0;
  double tpot = 0.0;
};

/// A bounded memory of requests, and their summary: a few groups from the tightest first token to the loosest.
class Promises {
 public:
  /// `ttft`, `tpot`: assumed until a request has ended.
  Promises(Millis ttft, Millis tpot);

  void remember(const ServedRequest& request);
  /// Medians of the deadlines; seconds, 0: none.
  [[nodiscard]] PromiseGroup median() const;
  /// By slack, the time to the first token less the prefill itself; requests without a deadline come last.
  [[nodiscard]] std::vector<PromiseGroup> groups(const WorkerCosts& costs, double input_mean) const;

 private:
  struct Promise {
    double input, ttft, tpot;
  };
  std::vector<Promise> latest_;  // A ring.
  std::size_t next_ = 0;
  Promise assumed_;
};

/// A share of tokens on time that more workers hardly raise: more than give this are not looked at one by one.
inline constexpr double kCertainAttainment = 0.99999;

/// Shares of tokens on time.
struct Attainment {
  double prefill = 1.0;  ///< First tokens.
  double decode = 1.0;   ///< Those after them.
};

/// What the laws of queues say of `workers` that run at `point` each: first tokens wait as in M/G/m with those turned
/// away that would be late; later tokens are late when a step takes longer than its client allows, and mostly when
/// their first one was.
[[nodiscard]] Attainment lawful_attainment(const std::vector<PromiseGroup>& groups, const WorkerCosts& costs,
                                           const OperatingPoint& point, double requests_per_second, int workers);

/// Of later tokens alone, where others prefill.
[[nodiscard]] double lawful_decode(const std::vector<PromiseGroup>& groups, const OperatingPoint& point);

}  // namespace sangam
