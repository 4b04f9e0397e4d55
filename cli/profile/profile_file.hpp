// What was measured of one model, and its file: one JSON object a model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/profile/cost_regression.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/telemetry.hpp"
#include "messages/vocabulary/result.hpp"
#include "sim/world/hardware.hpp"

namespace sangam {

struct Profile {
  ModelId model;
  std::string measured;      ///< When and where, for people.
  std::int64_t devices = 1;  ///< Of a worker that holds it.
  Bytes weights{0};          ///< Of one device, as the next.
  Bytes kv_per_token{0};
  /// From one token to the next of a stream that is alone, beside the step: what the worker does between two steps, and
  /// the token's way to its client where that is slower. 0: not measured, as the next.
  double between_steps_us = 0.0;
  double request_us = 0.0;  ///< What the first token takes beside its step, at an idle mesh.
  FittedCosts costs;
  std::vector<WorkSample> samples;

  /// What the oracle begins with: these costs, and the samples as if it had just heard them.
  [[nodiscard]] ModelPrior prior() const;
  /// The same for the simulator, in which steps follow each other without a gap: they are longer by it.
  [[nodiscard]] sim::ModelSpec spec() const;
};

/// Of a model of the simulator, in which a prefill is a step with one prompt, which makes its first token; microseconds.
void set_costs(sim::ModelSpec& spec, const ModelCosts& costs);

/// "org/model" becomes "org--model.json", as folders of models are called.
[[nodiscard]] std::filesystem::path profile_path(const std::filesystem::path& folder, const ModelId& model);

/// {"model", "measured", "devices", "weights_bytes", "kv_bytes_per_token", "between_steps_us",
///  "request_us", "costs": {"step_us": {"value", "low", "high"}, ...}, "r2", "error_median", "samples": [{...}]}
[[nodiscard]] std::string profile_json(const Profile& profile);
/// Errors name file, field and limit. A file without samples is one, if its costs are there.
[[nodiscard]] Result<Profile> read_profile(const std::filesystem::path& file);
/// All `*.json` of a folder, or the one file that is named; no model twice.
[[nodiscard]] Result<std::vector<Profile>> read_profiles(const std::filesystem::path& place);

}  // namespace sangam
