// One process of the mesh: its store, its post office, and the actors of the roles that it hosts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/mesh_config.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

class MeshProcess {
 public:
  /// Opens the store below `state`, this process's own folder, and the mesh's sockets. With nodes in the
  /// configuration, all `roles` (some of roles_of(config)) must lie on one of them. `unavailable`: another
  /// process has the store open.
  [[nodiscard]] static Result<std::unique_ptr<MeshProcess>> open(const MeshConfig& config,
                                                                 const std::vector<std::string>& roles,
                                                                 const std::filesystem::path& state);
  virtual ~MeshProcess() = default;

  /// Starts the actors of the roles. `unavailable`: the gateway's address is taken.
  [[nodiscard]] virtual Result<void> start(const MeshConfig& config, const std::vector<std::string>& roles) = 0;
  /// Where the gateway listens; empty where this process hosts none.
  [[nodiscard]] virtual std::string url() const = 0;
  /// Lets open calls end for `grace`, then stops everything.
  virtual void stop(Millis grace) = 0;
};

}  // namespace sangam
