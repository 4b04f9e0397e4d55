// Ways to run a fleet by name, and the instances of those whose number is fixed.
#include "sim/world/controls.hpp"

#include <doctest/doctest.h>

#include "sim/world/budgets.hpp"

namespace sangam::sim {
namespace {

constexpr Bytes kWeights{10'000'000'000};

/// Four workers with 16.2 GB for weights and KV each, of which instances fill 55 GB in all; two models of one second a
/// prompt.
Scenario four_workers() {
  Scenario scenario;
  scenario.workers = {{1, 4}};
  scenario.device.memory = Bytes(18'000'000'000);
  scenario.placement.emplace();
  for (const char* name : {"a", "b"}) {
    ModelSpec& model = scenario.models.emplace_back();
    model.id = ModelId(name);
    model.weights = kWeights;
    model.prefill_fixed = 1e6;
  }
  return scenario;
}

/// So many requests for each of the two, one token long.
Trace trace_of(std::size_t a, std::size_t b) {
  Trace trace{{"a", "b"}, {}};
  for (std::size_t i = 0; i < a; ++i) trace.requests.push_back({Micros(0), 0, Tokens(1), Tokens(1)});
  for (std::size_t i = 0; i < b; ++i) trace.requests.push_back({Micros(0), 1, Tokens(1), Tokens(1)});
  return trace;
}

using Instances = std::map<ModelId, std::uint32_t>;

TEST_CASE("instances fill the workers in proportion to work, by highest averages") {
  const Scenario scenario = four_workers();
  CHECK(instances_by_work(scenario, trace_of(30, 20), Bytes(0)) == Instances{{ModelId("a"), 3}, {ModelId("b"), 2}});
  CHECK(instances_by_work(scenario, trace_of(30, 10), Bytes(0)) == Instances{{ModelId("a"), 4}, {ModelId("b"), 1}});
  CHECK(instances_by_work(scenario, trace_of(30, 20), Bytes(4'000'000'000)) == Instances{{ModelId("a"), 2}, {ModelId("b"), 1}});
}

TEST_CASE("every model has an instance, none has more than there are workers, and no worker too many models") {
  Scenario scenario = four_workers();
  CHECK(instances_by_work(scenario, trace_of(30, 0), Bytes(0)) == Instances{{ModelId("a"), 4}, {ModelId("b"), 1}});
  scenario.placement->models_max = 1;
  CHECK(instances_by_work(scenario, trace_of(20, 20), Bytes(0)) == Instances{{ModelId("a"), 2}, {ModelId("b"), 2}});
}

TEST_CASE("a control set after another leaves nothing of it behind") {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  for (const ControlName& before : control_names()) {
    for (const ControlName& control : control_names()) pairs.emplace_back(before.name, control.name);
  }
  for (const auto& [before, control] : pairs) {
    CAPTURE(before);
    CAPTURE(control);
    Scenario once = four_workers(), after = four_workers();
    REQUIRE(set_control(once, control).has_value());
    REQUIRE(set_control(after, before).has_value());
    REQUIRE(set_control(after, control).has_value());
    CHECK(after.instances_by_work == once.instances_by_work);
    CHECK(after.placement.has_value() == once.placement.has_value());
    if (once.placement) CHECK(after.placement->policy.name == once.placement->policy.name);
    CHECK_UNARY(after.autoscaler.sizing == once.autoscaler.sizing);
    CHECK(after.autoscaler.sizes.instances_max == once.autoscaler.sizes.instances_max);
    CHECK(after.autoscaler.period == once.autoscaler.period);
    CHECK(after.autoscaler.hold == once.autoscaler.hold);
    CHECK(after.autoscaler.idle_to_zero == once.autoscaler.idle_to_zero);
  }
  Scenario scenario;
  const auto unknown = set_control(scenario, "best");
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().context.find("prism_with_allocator") != std::string::npos);
}

}  // namespace
}  // namespace sangam::sim
