// One process an actor on this machine: starts them, restarts those that die, and ends them all.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// A child process and how to start it.
struct ChildSpec {
  std::string role;                   ///< For log lines.
  std::vector<std::string> arguments;  ///< Of this same binary.
};

struct ChildrenOptions {
  Millis restart_delay_first{100};
  Millis restart_delay_max{10'000};  ///< The delay doubles up to this with each death in a row.
  Seconds healthy_after{60};         ///< A life this long starts the delays anew.
  Millis stop_grace{15'000};         ///< After SIGTERM; then SIGKILL.
};

/// Runs until SIGINT or SIGTERM. A child that ends because it was told wrong (exit code 2 to 4) ends them all
/// with that code; any other death is followed by a restart. Returns the exit code.
[[nodiscard]] int run_children(const std::vector<ChildSpec>& specs, const ChildrenOptions& options = {});

}  // namespace sangam
