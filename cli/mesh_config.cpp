// From TOML tables to the options of every role, with each reference checked.
#include "cli/mesh_config.hpp"

#include <algorithm>
#include <set>

#include "cli/config_reader.hpp"
#include "cli/node_tables.hpp"
#include "cli/planner_config.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

/// Where a path of the file lies: relative ones start at the file's own folder.
fs::path resolve(const std::string& path, const fs::path& base) {
  return fs::path(path).is_absolute() ? fs::path(path) : (base / path).lexically_normal();
}

/// Every folder below `pool` with a config.json is a model, named as the folder is.
Result<std::vector<ServedModel>> models_in(const fs::path& pool) {
  std::error_code failure;
  std::vector<ServedModel> models;
  for (const auto& entry : fs::directory_iterator(pool, failure)) {
    if (!fs::exists(entry.path() / "config.json")) continue;
    models.push_back({ModelId(entry.path().filename().string()), entry.path(), {}, Tokens(0), Millis(0)});
  }
  if (failure) return make_error(ErrorCode::not_found, pool.string() + ": " + failure.message() + "; name the folder of models with --models");
  if (models.empty()) {
    return make_error(ErrorCode::not_found, pool.string() + ": no folder with a config.json; a model is a folder as Hugging Face lays it out");
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return models;
}

class Reader {
 public:
  Reader(ConfigTable root, fs::path base, fs::path pool)
      : root_(std::move(root)), base_(std::move(base)), pool_(std::move(pool)) {}

  Result<MeshConfig> read() {
    read_mesh();
    if (auto models = read_models(); !models) return models.error();
    read_gateway();
    read_tenants();
    read_queue();
    read_scheduler();
    read_lifecycle();
    read_workers();
    read_planners(root_, config_, base_);
    read_node_tables(root_, config_);
    if (auto finished = root_.finish(); !finished) return finished.error();
    return std::move(config_);
  }

 private:
  void read_mesh() {
    auto mesh = root_.table("mesh");
    std::string state;
    mesh.read("state", state);
    if (!state.empty()) config_.state = resolve(state, base_);
    std::string keys;
    mesh.read("keys", keys);
    if (!keys.empty()) config_.keys = resolve(keys, base_);
    mesh.read("log", config_.log_level);
    mesh.read("heartbeat_interval", config_.heartbeat_interval);
    mesh.read("heartbeat_timeout", config_.heartbeat_timeout);
    if (config_.heartbeat_timeout < config_.heartbeat_interval * 2) {
      mesh.refuse("heartbeat_timeout", "'heartbeat_timeout' must be at least twice 'heartbeat_interval'");
    }
  }

  Result<void> read_models() {
    std::string pool;
    root_.table("pool").read("folder", pool);
    auto listed = root_.tables("model");
    for (auto& table : listed) read_model(table);
    if (!listed.empty() && pool.empty()) return {};
    auto found = models_in(pool.empty() ? pool_ : resolve(pool, base_));
    if (!found) return found.error();
    for (auto& model : *found) {
      if (names_.insert(model.id.text()).second) config_.gateway.models.push_back(std::move(model));
    }
    return {};
  }

  void read_model(ConfigTable& table) {
    ServedModel model;
    std::string path;
    table.read("id", model.id);
    table.read("path", path);
    table.read("aliases", model.aliases);
    table.read("ttft", model.ttft);
    std::int64_t context = 0;
    table.read("context", context);
    model.context = Tokens(context);
    model.folder = resolve(path, base_);
    if (model.id.empty() || path.empty()) table.refuse("id", "a [[model]] needs 'id' and 'path'");
    if (!path.empty() && !fs::exists(model.folder / "config.json")) {
      table.refuse("path", "'" + model.folder.string() + "' has no config.json; 'path' is the model's folder");
    }
    for (const auto& name : model.aliases) claim(table, "aliases", name);
    claim(table, "id", model.id.text());
    config_.gateway.models.push_back(std::move(model));
  }

  void claim(ConfigTable& table, std::string_view key, const std::string& name) {
    if (!name.empty() && !names_.insert(name).second) {
      table.refuse(key, "the name '" + name + "' is taken by another [[model]]; ids and aliases are unique");
    }
  }

  void read_gateway() {
    auto table = root_.table("gateway");
    auto& gateway = config_.gateway;
    gateway.listen = "127.0.0.1:8080";
    table.read("name", gateway.name);
    table.read("listen", gateway.listen);
    table.read("cors_origin", gateway.cors_origin);
    table.read("body_max", gateway.limits.body_max);
    table.read("connections_max", gateway.limits.connections_max);
    table.read("calls_max", gateway.limits.calls_max);
    table.read("ping_interval", gateway.times.ping);
    for (auto& key : root_.tables("key")) read_key(key);
  }

  void read_key(ConfigTable& table) {
    ApiKey key;
    std::int64_t tokens_per_minute = 0;
    key.tenant = TenantId("default");
    table.read("key", key.key);
    table.read("tenant", key.tenant);
    table.read("requests_per_minute", key.requests_per_minute);
    table.read("tokens_per_minute", tokens_per_minute);
    table.read("admin", key.admin);
    key.tokens_per_minute = Tokens(tokens_per_minute);
    if (key.key.empty()) table.refuse("key", "a [[key]] needs 'key', the text that clients send");
    config_.gateway.keys.push_back(std::move(key));
  }

  void read_tenants() {
    for (auto& table : root_.tables("tenant")) {
      TenantId name;
      TenantOptions tenant = config_.queue.tenant_default;
      table.read("name", name);
      table.read("weight", tenant.weight);
      read_waiting_limits(table, tenant.waiting_requests_max, tenant.waiting_tokens_max);
      if (name.empty()) table.refuse("name", "a [[tenant]] needs 'name'");
      if (tenant.weight < 1 || tenant.weight > 1'000'000) table.refuse("weight", "'weight' must be 1 to 1000000");
      config_.queue.tenants[name] = tenant;
    }
  }

  void read_queue() {
    auto table = root_.table("queue");
    auto& queue = config_.queue;
    read_waiting_limits(table, queue.waiting_requests_max, queue.waiting_tokens_max);
    auto tenant = table.table("tenant_default");
    read_waiting_limits(tenant, queue.tenant_default.waiting_requests_max, queue.tenant_default.waiting_tokens_max);
    table.read("best_effort_percent", queue.best_effort_percent);
    if (queue.best_effort_percent > 50) table.refuse("best_effort_percent", "'best_effort_percent' must be 0 to 50");
  }

  static void read_waiting_limits(ConfigTable& table, std::int64_t& requests, Tokens& tokens) {
    std::int64_t token_count = tokens.count();
    table.read("waiting_requests_max", requests);
    table.read("waiting_tokens_max", token_count);
    tokens = Tokens(token_count);
  }

  void read_scheduler() {
    auto table = root_.table("scheduler");
    auto& scheduler = config_.scheduler;
    std::string dispatch = "lst_imh";
    std::int64_t floor_percent = 5;
    auto look_ahead = std::chrono::duration_cast<Millis>(scheduler.look_ahead);
    table.read("dispatch", dispatch);
    table.read("look_ahead", look_ahead);
    table.read("floor_percent", floor_percent);
    scheduler.look_ahead = look_ahead;
    scheduler.floor_share = static_cast<double>(floor_percent) / 100.0;
    if (floor_percent > 100) table.refuse("floor_percent", "'floor_percent' must be 0 to 100");
    const auto policy = dispatch_policy(dispatch);
    policy ? void(scheduler.policy = *policy) : table.refuse("dispatch", policy.error().context);
  }

  void read_lifecycle() {
    auto table = root_.table("lifecycle");
    auto& lifecycle = config_.lifecycle;
    std::vector<std::string> pinned;
    table.read("idle_sleep", lifecycle.idle_sleep);
    table.read("pinned", pinned);
    table.read("dwell", lifecycle.dwell);
    table.read("patience", lifecycle.patience);
    table.read("drain_for", lifecycle.drain_for);
    table.read("cool_down_first", lifecycle.cool_down_first);
    table.read("cool_down_max", lifecycle.cool_down_max);
    for (const auto& model : pinned) {
      if (find_model(model) == nullptr) table.refuse("pinned", "'" + model + "' is no model of this mesh");
      lifecycle.pinned.insert(ModelId(model));
    }
    if (lifecycle.cool_down_max < lifecycle.cool_down_first)
      table.refuse("cool_down_max", "'cool_down_max' must be at least 'cool_down_first'");
  }

  void read_workers() {
    for (auto& table : root_.tables("worker")) read_worker(table);
    if (config_.workers.empty()) {
      WorkerOptions worker;
      worker.name = ActorName("worker/1");
      give_models(worker, {"*"});
      config_.workers.push_back(std::move(worker));
    }
  }

  static void read_role(ConfigTable& table, WorkerRole& role) {
    std::string name = "mixed";
    table.read("role", name);
    if (name == "prefill") role = WorkerRole::prefill;
    if (name == "decode") role = WorkerRole::decode;
    if (name != "mixed" && role == WorkerRole::mixed)
      table.refuse("role", "'role' must be mixed, prefill or decode, not '" + name + "'");
  }

  void read_worker(ConfigTable& table) {
    WorkerOptions worker;
    std::vector<std::string> models = {"*"};
    table.read("name", worker.name);
    table.read("models", models);
    table.read("memory", worker.pool_bytes);
    table.read("page", worker.page_bytes);
    table.read("preload", worker.preload);
    table.read("host_memory", worker.host_bytes);
    table.read("holder", worker.holder);
    table.read("running_max", worker.running_max);
    table.read("waiting_max", worker.waiting_max);
    std::int64_t threads = worker.threads;
    std::int64_t step_tokens = worker.step_tokens.count();
    table.read("step_tokens", step_tokens);
    table.read("shared_step_max", worker.shared_step_max);
    table.read("prefix_cache", worker.prefix_cache);
    table.read("threads", threads);
    table.read("isa", worker.isa);
    read_role(table, worker.role);
    worker.step_tokens = Tokens(step_tokens);
    worker.threads = static_cast<int>(threads);
    if (worker.running_max < 1) table.refuse("running_max", "'running_max' must be at least 1");
    if (step_tokens < 1) table.refuse("step_tokens", "'step_tokens' must be at least 1");
    if (worker.prefix_cache != "nobody" && worker.prefix_cache != "tenant" && worker.prefix_cache != "everyone")
      table.refuse("prefix_cache", "'prefix_cache' must be nobody, tenant or everyone");
    constexpr std::int64_t kThreadsMax = 1024;
    if (threads > kThreadsMax) table.refuse("threads", "'threads' must be 0 to 1024; 0 takes all cores");
    if (!worker.name.text().starts_with("worker/")) table.refuse("name", "a [[worker]] needs a 'name' that begins with worker/");
    for (const auto& other : config_.workers) {
      if (other.name == worker.name) table.refuse("name", "two workers are named '" + worker.name.text() + "'");
    }
    for (const auto& model : models) {
      const bool known = model == "*" || find_model(model) != nullptr;
      if (!known) table.refuse("models", "'" + model + "' is no model of this mesh");
    }
    give_models(worker, models);
    config_.workers.push_back(std::move(worker));
  }

  void give_models(WorkerOptions& worker, const std::vector<std::string>& wanted) const {
    for (const auto& model : config_.gateway.models) {
      const auto named = [&](const std::string& name) { return name == "*" || name == model.id.text(); };
      if (std::any_of(wanted.begin(), wanted.end(), named)) worker.models.emplace_back(model.id, model.folder.string());
    }
  }

  const ServedModel* find_model(const std::string& name) const {
    const auto& models = config_.gateway.models;
    const auto found = std::find_if(models.begin(), models.end(), [&](const auto& m) { return m.id.text() == name; });
    return found == models.end() ? nullptr : &*found;
  }

  ConfigTable root_;
  fs::path base_;
  fs::path pool_;
  MeshConfig config_;
  std::set<std::string> names_;
};

}  // namespace

Result<MeshConfig> read_mesh_config(const std::string& path, const fs::path& pool) {
  auto root = ConfigTable::parse_file(path);
  if (!root) return root.error();
  auto config = Reader(std::move(*root), fs::absolute(path).parent_path(), pool).read();
  if (config) config->source = path;
  return config;
}

Result<MeshConfig> default_mesh_config(const fs::path& pool) {
  auto root = ConfigTable::parse_text("", "built-in configuration");
  if (!root) return root.error();
  return Reader(std::move(*root), fs::current_path(), pool).read();
}

std::vector<std::string> roles_of(const MeshConfig& config) {
  std::vector<std::string> roles = {"gateway", "queue", "scheduler", "lifecycle"};
  if (config.oracle) roles.push_back("oracle");
  if (config.placement) roles.push_back("placement");
  if (config.autoscaler) roles.push_back("autoscaler");
  for (const auto& worker : config.workers) roles.push_back(worker.name.text());
  return roles;
}

}  // namespace sangam
