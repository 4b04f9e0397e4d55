// Traces on disk: CSV, plain or gzip, as written here, and the JSON lines of Mooncake's published traces.
#pragma once

#include <filesystem>

#include "sim/trace/trace.hpp"

namespace sangam::sim {

/// The first line decides what the file is:
/// - `arrival_s,app,input_tokens,output_tokens`: CSV; seconds with fraction, a name, two positive integers;
/// - an object with `timestamp` (milliseconds), `input_length` and `output_length`: JSON lines, whose one app is
///   named as the file is.
/// Lines may be in any order. A malformed line is `invalid_input` and names file:line, field, value and limit; a
/// damaged gzip stream is `corrupt`.
[[nodiscard]] Result<Trace> read_trace(const std::filesystem::path& path);

/// CSV with arrivals to the microsecond, compressed where the name ends in `.gz`. The file is there whole or not at all.
[[nodiscard]] Result<void> write_trace(const Trace& trace, const std::filesystem::path& path);

}  // namespace sangam::sim
