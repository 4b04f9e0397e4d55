// What is known of each request after a run, and what on time means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam::sim {

/// Token i (from 1) is on time when it is there ttft + (i - 1) x tpot after the request's arrival (Janus, section 5).
struct Slo {
  Millis ttft{0};
  Millis tpot{0};
};

/// Janus' published TTFT objective: 100 ms and 0.2 ms for each token of the prompt.
[[nodiscard]] constexpr Millis ttft_slo_of(Tokens input) {
  return Millis(100 + input.count() / 5);
}

/// Janus does not publish its objective for the time between tokens; 50 ms read faster than people do.
inline constexpr Millis kTpotSlo{50};

/// Counts the late tokens of one request as they arrive.
class LateTokens {
 public:
  explicit LateTokens(Slo slo) : slo_(slo) {}

  /// `count` tokens are there together, `since_arrival` after the request's arrival.
  void add(Micros since_arrival, std::int64_t count = 1);
  /// All of `wanted` where the request failed, else what arrived late or not at all.
  [[nodiscard]] Tokens late(Tokens wanted, bool failed) const;

 private:
  Slo slo_;
  std::int64_t seen_ = 0;
  std::int64_t on_time_ = 0;
};

struct RequestRecord {
  std::uint32_t app = 0;   ///< Index into the run's apps.
  Micros arrival{0};       ///< Since the run began.
  Micros ttft{-1};         ///< From arrival to the first token; negative: there was none.
  Micros end{0};           ///< Since the run began: last token, refusal or failure.
  Tokens input{0};
  Tokens output{0};        ///< As asked for.
  Tokens late{0};          ///< Of output. Whoever was refused or failed has all tokens late.
  Millis ttft_slo{0};
  Millis tpot_slo{0};
  ErrorCode code = ErrorCode::none;  ///< none: ended with its tokens.
};

/// So many devices are in use from `time` on.
struct DevicesInUse {
  Micros time{0};
  double devices = 0.0;
};

/// One run of a trace, on a mesh or in simulation.
struct MeasuredRun {
  std::string title;
  std::vector<std::string> apps;
  std::vector<RequestRecord> records;  ///< In any order.
  std::vector<DevicesInUse> devices;   ///< In order of time; empty: not known.
  double devices_total = 0.0;          ///< What a static deployment would use; 0: not known.
  Micros duration{0};                  ///< In which requests arrive: the last arrival counts if that is later.
  double time_scale = 1.0;             ///< So many seconds of the service's day pass in one second of the run.
};

}  // namespace sangam::sim
