// What a run came to: which tokens and requests were on time, how long was waited, what it took.
#pragma once

#include <map>
#include <optional>

#include "sim/report/record.hpp"

namespace sangam::sim {

/// Part of a whole, in [0, 1]; nothing where the whole is nought.
using Share = std::optional<double>;

/// Nearest rank, in milliseconds; nothing where there is no sample.
struct Percentiles {
  std::optional<double> p50, p90, p99, most;
};

/// Shares and goodput of some of the requests. A request belongs to the time at which it arrived.
struct Outcome {
  std::size_t requests = 0;
  std::size_t on_time = 0;      ///< All tokens on time.
  std::size_t e2e_on_time = 0;  ///< The last token within ttft_slo + (output - 1) x tpot_slo, others whenever (Janus' goodput).
  std::size_t ttft_on_time = 0;
  std::size_t tpot_asked = 0;    ///< Asked for more than one token.
  std::size_t tpot_on_time = 0;  ///< Of these: the mean time between their tokens is within tpot_slo.
  Tokens input{0};
  Tokens output{0};
  Tokens late{0};

  void add(const RequestRecord& record);
  [[nodiscard]] Share token_share() const;    ///< Tokens on time.
  [[nodiscard]] Share request_share() const;  ///< Requests with all tokens on time.
  [[nodiscard]] Share e2e_share() const;
  [[nodiscard]] Share ttft_share() const;
  [[nodiscard]] Share tpot_share() const;
};

struct AppOutcome {
  std::string name;
  Outcome outcome;
};

/// A piece of the run's time. Rates are its counts divided by `width`.
struct WindowOutcome {
  Micros start{0};
  Micros width{0};
  Outcome outcome;
  std::optional<double> devices;  ///< Mean.

  [[nodiscard]] double rate_of(std::size_t count) const;  ///< Per second.
};

struct Report {
  std::string title;
  Micros duration{0};  ///< In which requests arrive, at least a second; rates and devices are over this time.
  double time_scale = 1.0;
  Outcome all;
  std::map<ErrorCode, std::size_t> failures;  ///< Requests by what ended them; without `none`.
  Percentiles ttft;                           ///< Of the requests that had a first token.
  Percentiles tpot;                           ///< Of those that ended with more than one.
  std::vector<AppOutcome> apps;               ///< Those with requests, in the run's order.
  std::vector<WindowOutcome> windows;
  /// Sum of devices x seconds x time_scale / 3600 over the run.
  std::optional<double> device_hours;
  std::optional<double> device_hours_static;  ///< devices_total x duration x time_scale / 3600.

  [[nodiscard]] double rate_of(std::size_t count) const;  ///< Per second of the run.
  [[nodiscard]] Share app_share_mean() const;             ///< Token shares of apps, each counting alike.
  [[nodiscard]] const AppOutcome* worst_app() const;      ///< By token share; null where no app has any.
};

/// Windows of a minute, or of a round time such that there are 12 at least and 120 at most. What is left over at the
/// end belongs to the last one if it is less than half of a window.
[[nodiscard]] Report make_report(const MeasuredRun& run);

}  // namespace sangam::sim
