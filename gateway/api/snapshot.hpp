// A mesh's load and costs at one moment, as operators and `sangam simulate --what-if` read them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// What is always true of a model, as the worker tells that has read it.
struct ModelShape {
  std::int64_t devices = 1;
  Bytes weights{0};  ///< Of one device, as the next.
  Bytes kv_per_token{0};
};

/// All that can be said of a mesh's load and costs now.
struct MeshSnapshot {
  std::vector<Telemetry> workers;
  std::vector<WorkerMemory> memories;
  std::vector<InstanceState> instances;
  std::map<ModelId, ModelShape> shapes;
  std::map<ModelId, ModelForecast> forecasts;  ///< Empty without an oracle.
};

/// {"models": [{"model", "devices", "weights_bytes", "kv_bytes_per_token", "traffic": {...}, "costs": {...}}],
///  "workers": [{"worker", "incarnation", "sequence", "devices", "memory_bytes", "up_us", "busy_us", "steps",
///               "instances": [{"model", "residency", "prefill_tokens", "output_tokens", ...}]}]}
/// Traffic and costs are null where no oracle tells them; a count is that of Telemetry.
[[nodiscard]] std::string snapshot_json(const MeshSnapshot& snapshot);

}  // namespace sangam
