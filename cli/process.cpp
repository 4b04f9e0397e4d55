// Builds everything a process needs and passes it down; the order of members is the order of dependence.
#include "cli/process.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include "actors/host/host.hpp"
#include "actors/host/log.hpp"
#include "actors/lifecycle/lifecycle_core.hpp"
#include "actors/queue/queue_core.hpp"
#include "actors/scheduler/scheduler_core.hpp"
#include "actors/worker/engine_runner.hpp"
#include "actors/worker/worker_core.hpp"
#include "cli/catalog_runner.hpp"
#include "cli/key_files.hpp"
#include "cli/planners.hpp"
#include "gateway/gateway.hpp"
#include "messages/mesh/bulk.hpp"
#include "messages/mesh/mesh.hpp"
#include "storage/store/incarnation.hpp"
#include "storage/store/store.hpp"

namespace sangam {
namespace {

bool hosts(const NodeConfig& node, const std::string& role) {
  return std::find(node.roles.begin(), node.roles.end(), role) != node.roles.end();
}

/// The node that hosts all of `roles`; nothing where the mesh is one process.
Result<std::optional<NodeConfig>> node_of(const MeshConfig& config, const std::vector<std::string>& roles) {
  if (config.nodes.empty()) return std::optional<NodeConfig>{};
  std::vector<NodeConfig> found;
  for (const auto& node : config.nodes) {
    const bool is_meant = config.own.empty() || node.name == config.own;
    if (is_meant && std::all_of(roles.begin(), roles.end(), [&](const auto& role) { return hosts(node, role); }))
      found.push_back(node);
  }
  if (found.size() == 1) return std::optional<NodeConfig>(found.front());
  if (!found.empty()) {
    return make_error(ErrorCode::invalid_input, config.source + ": " + std::to_string(found.size()) +
                                                    " nodes host the roles that were asked for; say which one this is with --node");
  }
  const std::string which = config.own.empty() ? "no [[node]]" : "no [[node]] named '" + config.own.text() + "'";
  return make_error(ErrorCode::invalid_input,
                    config.source + ": " + which + " hosts all of the roles that were asked for; list them in one node's 'roles'");
}

MeshOptions mesh_options(const MeshConfig& config, const std::optional<NodeConfig>& own, Incarnation incarnation) {
  MeshOptions options;
  options.incarnation = incarnation;
  options.heartbeat_interval = config.heartbeat_interval;
  options.heartbeat_timeout = config.heartbeat_timeout;
  if (!own) return options;
  options.node = own->name;
  options.listen = {own->listen};
  for (const auto& node : config.nodes) options.peers.push_back({node.name, node.endpoint, node.public_key});
  return options;
}

/// As the mesh's, with the bulk channels of the nodes that have one.
BulkOptions bulk_options(const MeshConfig& config, const NodeConfig& own, MeshOptions mesh) {
  BulkOptions options;
  options.node = std::move(mesh);
  options.node.listen.clear();
  options.node.peers.clear();
  if (!own.bulk_listen.empty()) options.node.listen = {own.bulk_listen};
  for (const auto& node : config.nodes) {
    if (node.bulk.empty()) continue;
    options.node.peers.push_back({node.name, node.bulk, node.public_key});
    for (const auto& role : node.roles) {
      if (role.starts_with("worker/")) options.owners[ActorName(role)] = node.name;
    }
  }
  return options;
}

/// Where several nodes host a gateway, each has its place among them in its name and in its requests' ids.
void set_place(const MeshConfig& config, const std::optional<NodeConfig>& own, GatewayOptions& gateway) {
  std::uint32_t place = 0, gateways = 0;
  for (const auto& node : config.nodes) {
    if (!hosts(node, "gateway")) continue;
    if (own && node.name == own->name) place = gateways;
    ++gateways;
  }
  if (gateways < 2) return;
  gateway.place = place;
  gateway.name = ActorName("gateway/" + std::to_string(place + 1));
}

template <class Core, class... Arguments>
Result<std::unique_ptr<Hosted>> hosted(Arguments&&... arguments) {
  return {std::make_unique<HostedCore<Core>>(std::forward<Arguments>(arguments)...)};
}

class RunningProcess final : public MeshProcess {
 public:
  /// What it stands on, in the order of dependence.
  struct Ground {
    Store store;
    std::optional<NodeConfig> node;
    std::unique_ptr<Mesh> mesh;
    std::unique_ptr<Bulk> bulk;  ///< Null: no weights cross hosts.
  };
  RunningProcess(Ground ground, Incarnation incarnation) : ground_(std::move(ground)), incarnation_(incarnation) {
    HostOptions options;
    options.incarnation = incarnation;
    options.threads = std::max(1U, std::thread::hardware_concurrency());
    host_ = std::make_unique<Host>(options, *ground_.mesh);
  }

  Result<void> start(const MeshConfig& config, const std::vector<std::string>& roles) override {
    for (const auto& role : roles) {
      if (auto hosted = host_role(config, role); !hosted) return hosted;
    }
    return {};
  }

  std::string url() const override { return gateway_ ? gateway_->url() : std::string(); }

  void stop(Millis grace) override {
    if (gateway_) gateway_->stop(grace);
    host_.reset();
  }

 private:
  Result<void> host_role(const MeshConfig& config, const std::string& role) {
    if (role == "gateway") return start_gateway(config);
    if (role == "scheduler") {
      host_->spawn({ActorName("scheduler"), [options = config.scheduler](Incarnation) { return hosted<SchedulerCore>(options); }});
    } else if (role == "lifecycle") {
      auto make = [options = config.lifecycle](Incarnation incarnation) {
        auto own = options;
        own.incarnation = incarnation;
        return hosted<LifecycleCore>(std::move(own));
      };
      host_->spawn({ActorName("lifecycle"), std::move(make)});
    } else if (role == "queue") {
      for (const auto& model : config.gateway.models) spawn_queue(config.queue, model.id);
    } else if (auto planner = planner_role(config, role, ground_.store)) {
      host_->spawn(std::move(*planner));
    } else {
      return spawn_worker(config, role);
    }
    return {};
  }

  Result<void> start_gateway(const MeshConfig& config) {
    auto options = config.gateway;
    options.incarnation = incarnation_;
    set_place(config, ground_.node, options);
    auto gateway = Gateway::start(std::move(options), *ground_.mesh);
    if (!gateway) return gateway.error();
    gateway_ = std::move(*gateway);
    return {};
  }

  void spawn_queue(QueueOptions options, const ModelId& model) {
    options.model = model;
    host_->spawn({queue_of(model), [options](Incarnation) { return hosted<QueueCore>(options); }});
  }

  Result<void> spawn_worker(const MeshConfig& config, const std::string& role) {
    const auto worker = std::find_if(config.workers.begin(), config.workers.end(),
                                     [&](const auto& options) { return options.name.text() == role; });
    if (worker == config.workers.end()) {
      return make_error(ErrorCode::invalid_input, "'" + role + "' is no role of this mesh");
    }
    auto make = [options = *worker, &store = ground_.store, bulk = ground_.bulk.get()](Incarnation incarnation) -> Result<std::unique_ptr<Hosted>> {
      auto own = options;
      own.incarnation = incarnation;
      auto runner = make_engine_runner(own, bulk);
      if (!runner) return runner.error();
      return hosted<WorkerCore>(own, keep_catalog(std::move(*runner), {own.models.begin(), own.models.end()}, store));
    };
    host_->spawn({worker->name, std::move(make), true});
    return {};
  }

  Ground ground_;
  Incarnation incarnation_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace

Result<std::unique_ptr<MeshProcess>> MeshProcess::open(const MeshConfig& config, const std::vector<std::string>& roles,
                                                       const std::filesystem::path& state) {
  if (auto level = set_log_level(config.log_level); !level) return level.error();
  auto node = node_of(config, roles);
  if (!node) return node.error();
  auto store = Store::open(state / "store");
  if (!store) return store.error();
  auto incarnation = next_incarnation(*store, *node ? (*node)->name.text() : "local");
  if (!incarnation) return incarnation.error();
  auto log = [name = ActorName("mesh")](const LogLine& line) { write_log(name, line); };
  MeshOptions options = mesh_options(config, *node, *incarnation);
  if (*node) {
    auto keys = read_keys(config, **node);
    if (!keys) return keys.error();
    options.keys = std::move(*keys);
  }
  std::unique_ptr<Bulk> bulk;
  if (*node && !(*node)->bulk.empty()) {
    auto opened = open_bulk(bulk_options(config, **node, options), log);
    if (!opened) return opened.error();
    bulk = std::move(*opened);
  }
  auto mesh = open_mesh(std::move(options), log);
  if (!mesh) return mesh.error();
  RunningProcess::Ground ground{std::move(*store), std::move(*node), std::move(*mesh), std::move(bulk)};
  return {std::make_unique<RunningProcess>(std::move(ground), *incarnation)};
}

}  // namespace sangam
