// Each control is a choice of named policies and their constants.
#include "sim/world/controls.hpp"

#include <limits>

#include "actors/placement/policies.hpp"

namespace sangam::sim {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

PlacementOptions everyone_steady() {
  PlacementOptions options;
  options.pools.size_enter = options.pools.size_leave = kNoLimit;
  options.pools.volatility_enter = options.pools.volatility_leave = kNoLimit;
  options.pools.attainment_enter = options.pools.attainment_leave = 0.0;
  options.pools.enter_dwell = Millis(0);
  return options;
}

void both_pools(Scenario& scenario) {
  scenario.placement.emplace();
  scenario.autoscaler.sizing = elasticity;
}

void elastic_only(Scenario& scenario) {
  scenario.placement.reset();
  scenario.autoscaler.sizing = elasticity;
}

void steady_only(Scenario& scenario) {
  scenario.placement = everyone_steady();
  scenario.autoscaler.sizes.instances_max = 0;
}

/// Prism as published: each model has a budget of instances that does not change while it runs, and all are balanced
/// anew over the whole pool each 5 s. What shares a device is arbitrated by deadlines: the scheduler's common policy.
void prism(Scenario& scenario) {
  steady_only(scenario);
  scenario.placement->policy = periodic_balance_policy();
  scenario.instances_by_work = true;
}

/// Packing anew every 5 s, as Janus describes Prism's, of the even models, under our allocator for the others: the paper's
/// combined row. Not the balancing of `prism`, which has no use for a pool that others add workers to.
void prism_with_allocator(Scenario& scenario) {
  both_pools(scenario);
  scenario.placement->policy = periodic_repack_policy();
}

/// BlitzScale: prefill workers by the token rate, at its constants: every second, down after 5 s.
void blitzscale(Scenario& scenario) {
  elastic_only(scenario);
  scenario.autoscaler.sizing = reactive;
  scenario.autoscaler.period = Millis(1'000);
  scenario.autoscaler.hold = Millis(5'000);
}

/// ServerlessLLM: workers by requests under way, at its constants: every second, gone after 60 s without a request.
void serverless(Scenario& scenario) {
  elastic_only(scenario);
  scenario.autoscaler.sizing = per_app;
  scenario.autoscaler.period = Millis(1'000);
  scenario.autoscaler.hold = Millis(1'000);
  scenario.autoscaler.idle_to_zero = Millis(60'000);
}

/// The steady pool for even models, the baseline's autoscaler for the others.
void blitzscale_with_placement(Scenario& scenario) {
  blitzscale(scenario);
  scenario.placement.emplace();
}

void serverless_with_placement(Scenario& scenario) {
  serverless(scenario);
  scenario.placement.emplace();
}

struct Control {
  ControlName name;
  void (*set)(Scenario&);
};

constexpr Control kControls[] = {
    {{"sangam", "steady pool by potential, elastic pool by attainment bounds"}, both_pools},
    {{"elastic_only", "every model in the elastic pool"}, elastic_only},
    {{"steady_only", "every model in the steady pool"}, steady_only},
    {{"prism", "fixed numbers of instances, balanced anew every 5 s over all workers, after Prism"}, prism},
    {{"prism_with_allocator", "Prism's packing of even models, Sangam's autoscaler for the others"}, prism_with_allocator},
    {{"blitzscale", "workers by the token rate, after BlitzScale"}, blitzscale},
    {{"blitzscale_with_placement", "Sangam's placement of even models, BlitzScale's workers for the others"}, blitzscale_with_placement},
    {{"serverless", "workers by requests under way, after ServerlessLLM"}, serverless},
    {{"serverless_with_placement", "Sangam's placement of even models, ServerlessLLM's workers for the others"}, serverless_with_placement},
};

}  // namespace

const std::vector<ControlName>& control_names() {
  static const std::vector<ControlName> names = [] {
    std::vector<ControlName> all;
    for (const Control& control : kControls) all.push_back(control.name);
    return all;
  }();
  return names;
}

Result<void> set_control(Scenario& scenario, std::string_view name) {
  std::string known;
  for (const Control& control : kControls) {
    if (control.name.name == name) {
      const AutoscalerOptions fresh;  // What another control may have set.
      scenario.autoscaler.sizing = fresh.sizing;
      scenario.autoscaler.period = fresh.period;
      scenario.autoscaler.hold = fresh.hold;
      scenario.autoscaler.idle_to_zero = fresh.idle_to_zero;
      scenario.autoscaler.sizes.instances_max = fresh.sizes.instances_max;
      scenario.instances_by_work = false;
      control.set(scenario);
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(control.name.name);
  }
  return make_error(ErrorCode::invalid_input, "control '" + std::string(name) + "' is not known; use one of " + known);
}

}  // namespace sangam::sim
