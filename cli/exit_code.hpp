// What the exit codes of `sangam` mean.
#pragma once

#include "messages/vocabulary/result.hpp"

namespace sangam {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;      ///< Something of ours went wrong; the message says what.
inline constexpr int kExitUsage = 2;        ///< The command line, the configuration or a named file is wrong.
inline constexpr int kExitAddress = 3;      ///< The address cannot be listened on.
inline constexpr int kExitState = 4;        ///< The state folder cannot be used: locked, full or damaged.
inline constexpr int kExitUnavailable = 5;  ///< No mesh answers, or it is not ready.

[[nodiscard]] constexpr int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input:
    case ErrorCode::not_found:
    case ErrorCode::context_length: return kExitUsage;
    case ErrorCode::exhausted:
    case ErrorCode::corrupt: return kExitState;
    case ErrorCode::unavailable:
    case ErrorCode::queue_full:
    case ErrorCode::cannot_be_on_time:
    case ErrorCode::expired: return kExitUnavailable;
    case ErrorCode::none:
    case ErrorCode::cancelled:
    case ErrorCode::unauthorized:
    case ErrorCode::internal: break;
  }
  return kExitFailure;
}

}  // namespace sangam
