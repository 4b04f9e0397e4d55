// `sangam replay`: sends a trace to a running mesh as it was recorded and reports what came back on time.
#pragma once

#include <string>
#include <vector>

#include "cli/trace_part.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

struct ReplayOptions {
  std::string trace;
  std::string url = "http://127.0.0.1:8080";
  std::string key;
  std::vector<std::string> models;  ///< APP=MODEL each.
  double rate = 1.0;                ///< As in sim::TraceScaling.
  double time = 1.0;                ///< Times as fast.
  double length = 1.0;
  TracePart part;
  std::uint64_t seed = 1;
  double slo = 1.0;             ///< Both objectives are multiplied by it.
  std::int64_t tpot_ms = 50;    ///< Objective for the time between tokens.
  bool deadlines = true;        ///< Tell the mesh the objective for the first token, so that it may plan and refuse.
  std::int64_t timeout_s = 60;  ///< For each request, from when it was due.
  std::string json;             ///< Files to write; empty: none.
  std::string svg;
};

/// Prints the report whatever became of the requests. An error where nothing could be sent or nothing was answered.
[[nodiscard]] Result<void> replay(const ReplayOptions& options);

}  // namespace sangam
