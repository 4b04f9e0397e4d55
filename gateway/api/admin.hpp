// What operators send and get: commands as JSON, and what the mesh holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/api/errors.hpp"
#include "messages/vocabulary/lifecycle.hpp"

namespace sangam {

/// {"models": [...], "workers": [...], "sources": [...], "drain_for_ms": N, "at_deadline": "stay|cancel|migrate", "pin": bool}; every
/// field and the body itself may be absent. An unknown field is an error that names it.
[[nodiscard]] ApiResult<Command> parse_command(CommandVerb verb, std::string_view body);

/// {"orders": [{"model", "worker", "residency", "error", "took_ms", "moved_bytes", "phases", "evicted"}]}
[[nodiscard]] std::string command_json(const CommandEnded& ended);
/// A command that failed, as clients see it.
[[nodiscard]] ApiError error_of(const CommandEnded& ended);

/// {"instances": [{"model", "worker", "residency", "target", "live", "bytes": {...}, "error"}]}
[[nodiscard]] std::string instances_json(const std::vector<InstanceState>& instances);
/// {"workers": [{"worker", "pool_bytes", ..., "models": [{"model", "weights_bytes", "own_bytes", "shared_bytes"}]}]}
[[nodiscard]] std::string memory_json(const std::vector<WorkerMemory>& workers,
                                      const std::vector<InstanceState>& instances);

}  // namespace sangam
