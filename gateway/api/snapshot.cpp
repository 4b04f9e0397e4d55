// The snapshot's JSON.
#include "gateway/api/snapshot.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sangam {
namespace {

namespace json = boost::json;

json::object traffic_object(const ClientTraffic& traffic) {
  return {{"requests_per_second", traffic.requests_per_second},
          {"input_tokens_mean", traffic.input_mean},
          {"input_tokens_deviation", traffic.input_deviation},
          {"output_tokens_mean", traffic.output_mean},
          {"output_tokens_deviation", traffic.output_deviation},
          {"ttft_slo_ms", traffic.ttft_slo.count()},
          {"tpot_slo_ms", traffic.tpot_slo.count()}};
}

json::object costs_object(const ModelCosts& costs) {
  return {{"step_us", costs.step},
          {"prompt_us", costs.prompt},
          {"prompt_token_us", costs.prompt_token},
          {"sequence_us", costs.sequence},
          {"context_token_us", costs.context_token},
          {"settled", costs.settled}};
}

json::array models_of(const MeshSnapshot& snapshot) {
  json::array models;
  for (const auto& [id, shape] : snapshot.shapes) {
    json::object model{{"model", id.text()},
                       {"devices", shape.devices},
                       {"weights_bytes", shape.weights.count()},
                       {"kv_bytes_per_token", shape.kv_per_token.count()},
                       {"traffic", nullptr},
                       {"costs", nullptr}};
    if (const auto found = snapshot.forecasts.find(id); found != snapshot.forecasts.end()) {
      model["traffic"] = traffic_object(found->second.traffic);
      model["costs"] = costs_object(found->second.costs);
    }
    models.push_back(std::move(model));
  }
  return models;
}

/// Counts are those of Telemetry, which tells them of active models; others have done nothing since.
json::object instance_object(const InstanceState& instance, const Telemetry& worker) {
  const auto found = std::find_if(worker.models.begin(), worker.models.end(),
                                  [&](const ModelLoad& load) { return load.model == instance.model; });
  const ModelLoad load = found == worker.models.end() ? ModelLoad() : *found;
  return {{"model", instance.model.text()},
          {"residency", name_of(instance.residency)},
          {"prefill_tokens", load.prefill_tokens},
          {"output_tokens", load.output_tokens},
          {"context_tokens", load.context_tokens}};
}

json::object worker_object(const Telemetry& worker, const MeshSnapshot& snapshot) {
  json::array instances;
  for (const InstanceState& instance : snapshot.instances) {
    if (instance.worker == worker.worker) instances.push_back(instance_object(instance, worker));
  }
  const auto memory = std::find_if(snapshot.memories.begin(), snapshot.memories.end(),
                                   [&](const WorkerMemory& told) { return told.worker == worker.worker; });
  return {{"worker", worker.worker.text()},
          {"incarnation", std::uint64_t(worker.incarnation)},
          {"sequence", worker.sequence},
          {"devices", worker.devices},
          {"memory_bytes", memory == snapshot.memories.end() ? 0 : memory->pool.count()},
          {"up_us", worker.up.count()},
          {"busy_us", worker.busy.count()},
          {"steps", worker.steps},
          {"instances", std::move(instances)}};
}

}  // namespace

std::string snapshot_json(const MeshSnapshot& snapshot) {
  json::array workers;
  for (const Telemetry& worker : snapshot.workers) workers.push_back(worker_object(worker, snapshot));
  return json::serialize(json::object{{"models", models_of(snapshot)}, {"workers", std::move(workers)}});
}

}  // namespace sangam
