// `sangam ctl`: an operator's commands to a running mesh.
#pragma once

#include <string>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

struct CtlOptions {
  std::string url = "http://127.0.0.1:8080";
  std::string key;  ///< Of an operator, where the gateway has keys.
  bool json = false;
  std::vector<std::string> models;  ///< Empty: every model.
  std::vector<std::string> workers;
  std::vector<std::string> sources;
  Millis drain_for{30'000};
  std::string at_deadline = "stay";
  bool pin = false;
  std::string output;  ///< A file; empty: standard output.
};

/// Prints what the workers hold of each model.
[[nodiscard]] Result<void> ctl_models(const CtlOptions& options);
/// Prints what the workers' memory is used for.
[[nodiscard]] Result<void> ctl_memory(const CtlOptions& options);
/// Writes what the mesh is doing and what its models cost, for `sangam simulate --what-if`.
[[nodiscard]] Result<void> ctl_snapshot(const CtlOptions& options);
/// `verb`: load, wake, fork, sleep, unload or drain. Returns when it is done; prints how each step went.
[[nodiscard]] Result<void> ctl_command(const std::string& verb, const CtlOptions& options);

}  // namespace sangam
