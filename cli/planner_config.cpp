// From TOML tables to the planners' options, each limit checked; and who tells whom.
#include "cli/planner_config.hpp"

#include <algorithm>
#include <filesystem>

#include "cli/profile/profile_file.hpp"

namespace sangam {
namespace {

const ActorName kLifecycle("lifecycle");
const ActorName kPlacement("placement");
const ActorName kAutoscaler("autoscaler");

/// A whole number of things, of which there is at least one.
template <class Count>
void read_count(ConfigTable& table, std::string_view key, Count& target) {
  auto count = std::int64_t(target);
  table.read(key, count);
  if (count < 1) table.refuse(key, "'" + std::string(key) + "' must be at least 1");
  target = Count(count);
}

void read_share(ConfigTable& table, std::string_view key, double& target) {
  table.read(key, target);
  if (target <= 0.0 || target > 1.0) table.refuse(key, "'" + std::string(key) + "' must be above 0, and 1 at most");
}

void read_positive(ConfigTable& table, std::string_view key, double& target) {
  table.read(key, target);
  if (target <= 0.0) table.refuse(key, "'" + std::string(key) + "' must be above 0");
}

void read_time(ConfigTable& table, std::string_view key, Millis& target) {
  table.read(key, target);
  if (target <= Millis(0)) table.refuse(key, "'" + std::string(key) + "' must be above 0");
}

void read_priors(ConfigTable& table, const std::filesystem::path& base, OracleOptions& oracle) {
  std::string place;
  table.read("profiles", place);
  if (place.empty()) return;
  const auto profiles = read_profiles(base / place);
  if (!profiles) return table.refuse("profiles", profiles.error().context);
  for (const Profile& profile : *profiles) oracle.priors[profile.model] = profile.prior();
}

OracleOptions read_oracle(ConfigTable table, const MeshConfig& config, const std::filesystem::path& base) {
  OracleOptions oracle;
  read_priors(table, base, oracle);
  read_time(table, "every", oracle.every);
  read_time(table, "fast", oracle.fast);
  read_time(table, "slow", oracle.slow);
  read_time(table, "past", oracle.past);
  table.read("ttft", oracle.ttft);
  table.read("tpot", oracle.tpot);
  table.read("confidence", oracle.confidence);
  read_count(table, "instances_max", oracle.instances_max);
  read_positive(table, "flop_per_second", oracle.device.flop_per_second);
  read_positive(table, "read_bytes_per_second", oracle.device.bytes_per_second);
  if (oracle.fast > oracle.slow || oracle.slow > oracle.past)
    table.refuse("slow", "the windows must be in order: fast <= slow <= past");
  constexpr std::size_t kInstancesMax = 1024;
  if (oracle.instances_max > kInstancesMax) table.refuse("instances_max", "'instances_max' must be 1 to 1024");
  oracle.device.page = config.workers.front().page_bytes;
  const bool same_pages = std::all_of(config.workers.begin(), config.workers.end(), [&](const WorkerOptions& worker) {
    return worker.page_bytes == oracle.device.page;
  });
  if (!same_pages) table.refuse("every", "with an [oracle] all workers have the same 'page': it counts their pages");
  return oracle;
}

void read_pools(ConfigTable& table, PoolOptions& pools) {
  read_positive(table, "size_enter", pools.size_enter);
  read_positive(table, "size_leave", pools.size_leave);
  read_positive(table, "volatility_enter", pools.volatility_enter);
  read_positive(table, "volatility_leave", pools.volatility_leave);
  table.read("peak_small", pools.peak_small);
  read_share(table, "attainment_enter", pools.attainment_enter);
  read_share(table, "attainment_leave", pools.attainment_leave);
  table.read("late_away", pools.late_away);
  table.read("enter_dwell", pools.enter_dwell);
  table.read("leave_dwell", pools.leave_dwell);
  table.read("idle_leave", pools.idle_leave);
  if (pools.size_leave < pools.size_enter) table.refuse("size_leave", "'size_leave' must be at least 'size_enter'");
  if (pools.volatility_leave < pools.volatility_enter)
    table.refuse("volatility_leave", "'volatility_leave' must be at least 'volatility_enter'");
  if (pools.attainment_leave > pools.attainment_enter)
    table.refuse("attainment_leave", "'attainment_leave' must be at most 'attainment_enter'");
}

PlacementOptions read_placement(ConfigTable table) {
  PlacementOptions placement;
  std::string policy(placement.policy.name);
  table.read("policy", policy);
  const auto found = placement_policy(policy);
  found ? void(placement.policy = *found) : table.refuse("policy", found.error().context);
  read_time(table, "interval", placement.interval);
  table.read("settle", placement.settle);
  table.read("deviations", placement.deviations);
  read_share(table, "busy_max", placement.busy_max);
  read_count(table, "models_max", placement.models_max);
  read_positive(table, "damage_max", placement.damage_max);
  table.read("pools_per_worker_saved", placement.pools_per_worker_saved);
  read_count(table, "search_effort", placement.search_effort);
  read_pools(table, placement.pools);
  return placement;
}

AutoscalerOptions read_autoscaler(ConfigTable table) {
  AutoscalerOptions autoscaler;
  std::string policy = "elasticity_gp";
  std::string budget = "proportional";
  table.read("policy", policy);
  table.read("budget", budget);
  const auto sizing = sizing_policy(policy);
  const auto rule = budget_rule(budget);
  sizing ? void(autoscaler.sizing = *sizing) : table.refuse("policy", sizing.error().context);
  rule ? void(autoscaler.budget = *rule) : table.refuse("budget", rule.error().context);
  read_time(table, "period", autoscaler.period);
  table.read("hold", autoscaler.hold);
  read_time(table, "idle_to_zero", autoscaler.idle_to_zero);
  read_share(table, "attainment", autoscaler.sizes.attainment);
  read_count(table, "instances_max", autoscaler.sizes.instances_max);
  read_count(table, "waiting_per_worker", autoscaler.sizes.waiting_per_worker);
  read_positive(table, "spare_from", autoscaler.sizes.spare_from);
  read_positive(table, "spare_rate", autoscaler.sizes.spare_rate);
  read_positive(table, "reactive_tokens_per_second", autoscaler.sizes.reactive_tokens_per_second);
  read_share(table, "reactive_low", autoscaler.sizes.reactive_low);
  read_share(table, "reactive_high", autoscaler.sizes.reactive_high);
  read_count(table, "reactive_max", autoscaler.sizes.reactive_max);
  read_count(table, "per_app_ongoing", autoscaler.sizes.per_app_ongoing);
  read_count(table, "per_app_max", autoscaler.sizes.per_app_max);
  if (autoscaler.sizes.reactive_low >= autoscaler.sizes.reactive_high)
    table.refuse("reactive_low", "'reactive_low' must be below 'reactive_high'");
  return autoscaler;
}

/// Who is told what, by who is there.
void connect(MeshConfig& config) {
  if (config.oracle) config.oracle->hearers = {config.gateway.name};
  if (config.autoscaler) {
    config.autoscaler->hearers = {kLifecycle};
    if (config.oracle) config.oracle->hearers.push_back(kAutoscaler);
  }
  if (!config.placement) return;
  config.placement->tell = {kLifecycle};
  if (config.oracle) config.oracle->hearers.push_back(kPlacement);
  if (!config.autoscaler) return;
  config.placement->tell.push_back(kAutoscaler);
  config.autoscaler->hearers.push_back(kPlacement);
}

}  // namespace

void read_planners(ConfigTable& root, MeshConfig& config, const std::filesystem::path& base) {
  // In any case, so that the keys are known.
  const bool has_oracle = root.has("oracle");
  const bool has_placement = root.has("placement");
  const bool has_autoscaler = root.has("autoscaler");
  OracleOptions oracle = read_oracle(root.table("oracle"), config, base);
  PlacementOptions placement = read_placement(root.table("placement"));
  AutoscalerOptions autoscaler = read_autoscaler(root.table("autoscaler"));
  for (const char* planner : {"placement", "autoscaler"}) {
    if (root.has(planner) && !has_oracle)
      root.refuse(planner, "[" + std::string(planner) + "] plans by what an oracle foresees; add a table [oracle]");
  }
  if (has_oracle) config.oracle = std::move(oracle);
  if (has_placement) config.placement = std::move(placement);
  if (has_autoscaler) config.autoscaler = std::move(autoscaler);
  connect(config);
}

}  // namespace sangam
