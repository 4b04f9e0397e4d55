// What really happened, by windows of time: what the workers used, and whose tokens were on time.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "actors/oracle/capacity.hpp"
#include "actors/oracle/elasticity.hpp"
#include "actors/oracle/worker_costs.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// What all workers of a model used since the last reset, in the mean over time.
class UsedDemand {
 public:
  void add(const ActorName& worker, const LoadDelta& delta);
  /// A worker that told of nearly all of `seconds` counts whole: letters do not begin and end with windows.
  [[nodiscard]] Demand mean(double seconds) const;
  /// Workers that told, in the mean.
  [[nodiscard]] double workers(double seconds) const;
  [[nodiscard]] double prefill_tokens() const { return prefill_tokens_; }
  void reset();

 private:
  struct Integral {
    double seconds = 0.0;
    Demand sum;  ///< Times seconds.
  };
  std::map<ActorName, Integral> workers_;
  double prefill_tokens_ = 0.0;
};

/// The requests that came within one window, and what was foreseen for them.
struct AttainmentWindow {
  Instant begin{};
  Instant end{};
  double arrived_before = 0.0;
  int workers = 0;
  bool steady = true;  ///< The workers stayed the same throughout.
  std::vector<double> inputs;
  Attainment lawful;
  Punctuality first;
  Punctuality later;
};

struct AttainmentWindowOptions {
  Millis length{10'000};
  Millis lag{10'000};
};

/// Sorts ended requests into windows by when they came. A window ends after its length with enough requests, or
/// after some lengths; a while later, when its requests have ended, it is complete.
class AttainmentWindows {
 public:
  explicit AttainmentWindows(const AttainmentWindowOptions& options) : options_(options) {}

  /// Requests whose end tells nothing of our speed (cancelled, wrong) are left out.
  void note(const ServedRequest& request, Instant now);
  /// The window that ends now, for the caller to write down what is foreseen; until the next call.
  [[nodiscard]] AttainmentWindow* tick(int workers, double arrived, Instant now);
  [[nodiscard]] std::optional<AttainmentWindow> complete(Instant now);

 private:
  AttainmentWindowOptions options_;
  std::deque<AttainmentWindow> windows_;  // The last one is open.
};

}  // namespace sangam
