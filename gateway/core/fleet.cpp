// Keeps the last reported state of every queue and instance.
#include "gateway/core/fleet.hpp"

namespace sangam {
namespace {

const ActorName kOracle("oracle");

}  // namespace

void MeshView::found(const ActorName& actor) {
  actors_.insert(actor);
}

/// What it reported is no longer so; what it counted has happened.
void MeshView::retire(Instance& instance) {
  instance.ready = false;
  instance.status = {};
  for (Rising* count : {&instance.preemptions, &instance.prefix_queries, &instance.prefix_hits, &instance.self_decodes})
    count->last = 0;
}

void MeshView::lost(const ActorName& actor) {
  actors_.erase(actor);
  for (auto& [key, instance] : instances_) {
    if (key.second == actor) retire(instance);
  }
  std::erase_if(states_, [&](const auto& state) { return state.first.second == actor; });
  memories_.erase(actor);
  telemetries_.erase(actor);
  if (actor == kOracle) forecasts_.clear();
  for (auto& [model, queue] : queues_) {
    if (queue_of(model) != actor) continue;
    queue.status = {};
    queue.refused.last = queue.expired.last = 0;
  }
}

void MeshView::ready(const InstanceReady& instance) {
  instances_[{instance.model, instance.worker}].ready = true;
}

void MeshView::gone(const InstanceGone& gone) {
  const auto found = instances_.find({gone.model, gone.worker});
  if (found != instances_.end()) retire(found->second);
}

void MeshView::status(const InstanceStatus& status) {
  Instance& instance = instances_[{status.model, status.worker}];
  instance.status = status;
  instance.preemptions.see(status.preemptions);
  instance.prefix_queries.see(status.prefix_queries);
  instance.prefix_hits.see(status.prefix_hits);
  instance.self_decodes.see(status.self_decodes);
}

void MeshView::status(const QueueStatus& status) {
  Queue& queue = queues_[status.model];
  queue.status = status;
  queue.refused.see(status.refused);
  queue.expired.see(status.expired);
}

void MeshView::forecast(const Forecast& forecast) {
  forecasts_.clear();
  for (const ModelForecast& model : forecast.models) forecasts_[model.model] = model;
}

void MeshView::telemetry(const Telemetry& telemetry) {
  Telemetry& last = telemetries_[telemetry.worker];
  const bool is_late = last.incarnation == telemetry.incarnation && telemetry.sequence <= last.sequence;
  if (!is_late && telemetry.incarnation >= last.incarnation) last = telemetry;
}

void MeshView::table(const ModelTable& table) {
  Bytes weights{0};
  for (const SegmentSize& segment : table.segments) weights += segment.bytes;
  shapes_[table.model] = {table.devices, weights, table.kv_per_token};
}

MeshSnapshot MeshView::snapshot() const {
  MeshSnapshot snapshot;
  for (const auto& [worker, telemetry] : telemetries_) snapshot.workers.push_back(telemetry);
  snapshot.memories = memories();
  snapshot.instances = instances();
  snapshot.shapes = shapes_;
  snapshot.forecasts = forecasts_;
  return snapshot;
}

ModelState MeshView::state_of(const ModelId& model) const {
  ModelState state;
  if (const auto found = forecasts_.find(model); found != forecasts_.end()) state.forecast = found->second;
  std::int64_t pages_used = 0;
  std::int64_t pages = 0;
  for (auto at = instances_.lower_bound({model, ActorName()});
       at != instances_.end() && at->first.first == model; ++at) {
    const Instance& instance = at->second;
    state.instances += instance.ready ? 1 : 0;
    state.running += instance.status.running;
    state.waiting += instance.status.waiting;
    state.preemptions += instance.preemptions.total;
    state.prefix_queries += instance.prefix_queries.total;
    state.prefix_hits += instance.prefix_hits.total;
    state.self_decodes += instance.self_decodes.total;
    pages_used += instance.status.kv_used.count();
    pages += instance.status.kv_total.count();
  }
  state.kv_used = pages == 0 ? 0.0 : double(pages_used) / double(pages);
  if (const auto queue = queues_.find(model); queue != queues_.end()) {
    state.waiting += queue->second.status.waiting;
    state.refused = queue->second.refused.total;
    state.expired = queue->second.expired.total;
  }
  return state;
}

void MeshView::state(const InstanceState& state) {
  states_[{state.model, state.worker}] = state;
}

std::string MeshView::status_of(const ModelId& model) const {
  if (state_of(model).instances > 0) return "ready";
  std::string status = "waiting";
  for (auto at = states_.lower_bound({model, ActorName()}); at != states_.end() && at->first.first == model; ++at) {
    const InstanceState& state = at->second;
    if (state.target == Residency::active) return "waking";
    const bool is_broken = state.code != ErrorCode::none && state.code != ErrorCode::exhausted;
    if (status != "asleep") status = is_broken ? "failed" : "asleep";
  }
  return status;
}

bool MeshView::can_run(const ModelId& model) const {
  if (!present(queue_of(model))) return false;
  const std::string status = status_of(model);
  const bool somebody_wakes = present(ActorName("lifecycle"));
  return status == "ready" || (somebody_wakes && (status == "asleep" || status == "waking"));
}

std::vector<InstanceState> MeshView::instances() const {
  std::vector<InstanceState> states;
  for (const auto& [key, state] : states_) states.push_back(state);
  return states;
}

std::vector<WorkerMemory> MeshView::memories() const {
  std::vector<WorkerMemory> memories;
  for (const auto& [worker, memory] : memories_) memories.push_back(memory);
  return memories;
}

}  // namespace sangam
