// The configuration of a whole mesh, as every process of it reads it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/autoscaler/autoscaler_core.hpp"
#include "actors/lifecycle/lifecycle_options.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "actors/placement/placement_options.hpp"
#include "actors/queue/queue_options.hpp"
#include "actors/scheduler/scheduler_core.hpp"
#include "actors/worker/worker_options.hpp"
#include "gateway/options.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// One process of the mesh: where it listens for the others and which roles it hosts.
struct NodeConfig {
  NodeName name;
  std::string endpoint;            ///< Where the others reach it: "tcp://host:port" or "ipc:///path".
  std::string listen;              ///< What it binds, where that differs: "tcp://*:7700".
  std::vector<std::string> roles;  ///< "gateway", "queue", "scheduler", "worker/1"
  std::string public_key = {};     ///< Where the mesh has keys.
  std::string bulk = {};           ///< Where other hosts read its workers' weights; empty: nowhere.
  std::string bulk_listen = {};    ///< What it binds for that.
};

struct MeshConfig {
  std::string source;           ///< The file, for messages; empty for the built-in one.
  std::filesystem::path state;  ///< Where each process keeps its store.
  std::string log_level = "info";
  Millis heartbeat_interval{200};
  Millis heartbeat_timeout{1'000};
  std::filesystem::path keys;     ///< Folder with the secret key of each node, as NAME.key; empty: the mesh has no keys.
  std::vector<NodeConfig> nodes;  ///< Empty: everything in one process.
  NodeName own;                   ///< Which of them this process is; empty: the one that hosts its roles.
  GatewayOptions gateway;         ///< Its models are all models of the mesh.
  QueueOptions queue;             ///< What all queues have in common.
  SchedulerOptions scheduler;
  LifecycleOptions lifecycle;
  // The planners, each where the file has a table of it.
  std::optional<OracleOptions> oracle;
  std::optional<PlacementOptions> placement;
  std::optional<AutoscalerOptions> autoscaler;
  std::vector<WorkerOptions> workers;
};

/// Reads a file; every model folder named there, and every reference between tables, is checked.
/// `pool` is the folder of models that is served where the file names none.
[[nodiscard]] Result<MeshConfig> read_mesh_config(const std::string& path, const std::filesystem::path& pool);
/// What `sangam up` serves without a file: one worker with every model of the pool.
[[nodiscard]] Result<MeshConfig> default_mesh_config(const std::filesystem::path& pool);
/// "gateway", "queue", "scheduler", "lifecycle", the planners that are configured and every worker's name: what a mesh of this configuration consists of.
[[nodiscard]] std::vector<std::string> roles_of(const MeshConfig& config);

}  // namespace sangam
