// The planners as roles to host: with epochs that rise over restarts, and with the placement's memory.
#pragma once

#include <optional>
#include <string>

#include "actors/host/hosted.hpp"
#include "cli/mesh_config.hpp"
#include "storage/store/store.hpp"

namespace sangam {

/// "oracle", "placement" or "autoscaler"; nothing for other names. The configuration has its table. `store` outlives it.
[[nodiscard]] std::optional<Role> planner_role(const MeshConfig& config, const std::string& role, Store& store);

/// Below all epochs of plans of a later incarnation, and above those of an earlier one.
[[nodiscard]] std::uint64_t first_epoch(Incarnation incarnation);

/// The placement, whose last plan is kept in the store: a later one goes on from it. What cannot be kept or read is
/// logged; the placement then plans as if it were new.
[[nodiscard]] std::unique_ptr<Hosted> keep_plans(PlacementOptions options, Store& store);

}  // namespace sangam
