// Whole ways to run a fleet, by name: Sangam's, its parts alone, and what others do, as far as published constants
// tell it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "sim/world/scenario.hpp"

namespace sangam::sim {

struct ControlName {
  std::string_view name;
  std::string_view what;
};
[[nodiscard]] const std::vector<ControlName>& control_names();

/// Sets the scenario's control loops. The error names those that there are.
[[nodiscard]] Result<void> set_control(Scenario& scenario, std::string_view name);

}  // namespace sangam::sim
