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
#include "cli/planners.hpp"
#include "gateway/gateway.hpp"
#include "messages/mesh/mesh.hpp"
#include "storage/store/incarnation.hpp"
#include "storage/store/store.hpp"

namespace sangam {
namespace {

/// The node that hosts all of `roles`; nothing where the mesh is one process.
Result<std::optional<NodeConfig>> node_of(const MeshConfig& config, const std::vector<std::string>& roles) {
  if (config.nodes.empty()) return std::optional<NodeConfig>{};
  for (const auto& node : config.nodes) {
    const auto hosts = [&](const std::string& role) {
      return std::find(node.roles.begin(), node.roles.end(), role) != node.roles.end();
    };
    if (std::all_of(roles.begin(), roles.end(), hosts)) return std::optional<NodeConfig>(node);
  }
  return make_error(ErrorCode::invalid_input,
                    config.source + ": no [[node]] hosts all of the roles that were asked for; list them in one node's 'roles'");
}

MeshOptions mesh_options(const MeshConfig& config, const std::optional<NodeConfig>& own, Incarnation incarnation) {
  MeshOptions options;
  options.incarnation = incarnation;
  options.heartbeat_interval = config.heartbeat_interval;
  options.heartbeat_timeout = config.heartbeat_timeout;
  if (!own) return options;
  options.node = own->name;
  options.listen = {own->listen};
  for (const auto& node : config.nodes) options.peers.push_back({node.name, node.endpoint, {}});
  return options;
}

template <class Core, class... Arguments>
Result<std::unique_ptr<Hosted>> hosted(Arguments&&... arguments) {
  return {std::make_unique<HostedCore<Core>>(std::forward<Arguments>(arguments)...)};
}

class RunningProcess final : public MeshProcess {
 public:
  RunningProcess(Store store, std::unique_ptr<Mesh> mesh, Incarnation incarnation)
      : store_(std::move(store)), mesh_(std::move(mesh)), incarnation_(incarnation) {
    HostOptions options;
    options.incarnation = incarnation;
    options.threads = std::max(1U, std::thread::hardware_concurrency());
    host_ = std::make_unique<Host>(options, *mesh_);
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
    } else if (auto planner = planner_role(config, role, store_)) {
      host_->spawn(std::move(*planner));
    } else {
      return spawn_worker(config, role);
    }
    return {};
  }

  Result<void> start_gateway(const MeshConfig& config) {
    auto options = config.gateway;
    options.incarnation = incarnation_;
    auto gateway = Gateway::start(std::move(options), *mesh_);
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
    auto make = [options = *worker, &store = store_](Incarnation incarnation) -> Result<std::unique_ptr<Hosted>> {
      auto own = options;
      own.incarnation = incarnation;
      auto runner = make_engine_runner(own);
      if (!runner) return runner.error();
      return hosted<WorkerCore>(own, keep_catalog(std::move(*runner), {own.models.begin(), own.models.end()}, store));
    };
    host_->spawn({worker->name, std::move(make), true});
    return {};
  }

  Store store_;
  std::unique_ptr<Mesh> mesh_;
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
  auto mesh = open_mesh(mesh_options(config, *node, *incarnation), log);
  if (!mesh) return mesh.error();
  return {std::make_unique<RunningProcess>(std::move(*store), std::move(*mesh), *incarnation)};
}

}  // namespace sangam
