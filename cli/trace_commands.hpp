// The subcommands about workloads: `sangam trace`, `replay`, `simulate` and `profile`.
#pragma once

#include <memory>
#include <optional>

#include "messages/vocabulary/result.hpp"

namespace CLI {
class App;
}

namespace sangam {

class TraceCommands {
 public:
  explicit TraceCommands(CLI::App& app);
  TraceCommands(const TraceCommands&) = delete;
  TraceCommands& operator=(const TraceCommands&) = delete;
  ~TraceCommands();

  /// Does what the parsed command line asks for; nothing where it asks for something else.
  [[nodiscard]] std::optional<Result<void>> run() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sangam
