// Gives away one instance after the other.
#include "sim/world/budgets.hpp"

#include <algorithm>
#include <vector>

namespace sangam::sim {
namespace {

/// Sequences that share a step; what counts is the work of models beside each other.
constexpr double kBatch = 8.0;
/// Of a class's memory: instances differ in size, and the last ones would find no worker with enough room.
constexpr double kFill = 0.85;

std::vector<double> work_of(const Scenario& scenario, const Trace& trace) {
  std::vector<double> work(scenario.models.size());  // Microseconds of one worker.
  for (const TraceRequest& request : trace.requests) {
    const ModelSpec& model = scenario.models[request.app];
    const double step = model.step(kBatch, kBatch * double(request.input.count())) / kBatch;
    work[request.app] += model.prefill(request.input) + double(request.output.count()) * step;
  }
  return work;
}

}  // namespace

std::map<ModelId, std::uint32_t> instances_by_work(const Scenario& scenario, const Trace& trace, Bytes kv) {
  const std::vector<double> work = work_of(scenario, trace);
  const std::size_t models_max = scenario.placement ? scenario.placement->models_max : 1;
  std::map<ModelId, std::uint32_t> given;
  for (const auto& [devices, workers] : scenario.workers) {
    double bytes = kFill * double(workers) * double(scenario.device.usable().count());
    double places = double(workers) * double(models_max);
    std::vector<std::size_t> open;
    const auto give = [&](std::size_t i) {
      bytes -= double((scenario.models[i].weights + kv).count());
      places -= 1.0;
      ++given[scenario.models[i].id];
    };
    for (std::size_t i = 0; i < scenario.models.size(); ++i) {
      if (scenario.models[i].devices != devices) continue;
      give(i);
      open.push_back(i);
    }
    const auto average = [&](std::size_t i) { return work[i] / double(given.at(scenario.models[i].id) + 1); };
    while (true) {
      std::erase_if(open, [&](std::size_t i) {
        const ModelSpec& model = scenario.models[i];
        return places < 1.0 || double((model.weights + kv).count()) > bytes || given.at(model.id) >= workers;
      });
      if (open.empty()) break;
      give(*std::max_element(open.begin(), open.end(), [&](auto a, auto b) { return average(a) < average(b); }));
    }
  }
  return given;
}

}  // namespace sangam::sim
