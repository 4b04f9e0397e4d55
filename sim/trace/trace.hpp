// A request trace: who asked for how many tokens when, and how to make it longer, shorter, denser or faster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam::sim {

struct TraceRequest {
  Micros arrival{0};      ///< Since the trace began.
  std::uint32_t app = 0;  ///< Index into the trace's apps.
  Tokens input{0};        ///< Length of the prompt, at least 1.
  Tokens output{0};       ///< Length of the answer, at least 1.
};

struct Trace {
  std::vector<std::string> apps;       ///< Names, each once.
  std::vector<TraceRequest> requests;  ///< In order of arrival.
};

struct TraceScaling {
  double rate = 1.0;   ///< Times as many requests, 0 < rate <= 1000.
  double speed = 1.0;  ///< Times as fast: arrivals are divided by it, 0 < speed <= 1e6.
  std::uint64_t seed = 1;
  double length = 1.0;  ///< Prompts and answers so many times as long, rounded, at least a token, 0 < length <= 1000.
};

/// Fewer requests by keeping each with probability `rate`; more by adding copies, each at a uniform instant of its
/// original's second, so that the rate of every second grows alike and copies do not arrive together.
[[nodiscard]] Result<Trace> scaled(Trace trace, const TraceScaling& scaling);

/// The requests that arrive in [from, until), their arrivals counted from `from`. All apps stay, so indices hold.
[[nodiscard]] Trace between(Trace trace, Micros from, Micros until);

/// The first `count` requests.
[[nodiscard]] Trace limited(Trace trace, std::size_t count);

}  // namespace sangam::sim
