// What the control loops hear of a worker's work.
#include <algorithm>
#include <set>

#include "actors/worker/worker_core.hpp"

namespace sangam {

/// A token of a request that is among the step's prompts is that prompt's first one.
void WorkerCore::count_work(const StepOutcome& outcome) {
  std::map<ModelId, StepShare> work;
  std::set<RequestId> prompts;
  for (const PrefillRows& part : outcome.prefills) {
    work[live_.at(part.request).model].prefilled += part.rows;
    prompts.insert(part.request);
  }
  for (const TokensProduced& produced : outcome.produced) {
    const Tokens made(std::int64_t(produced.tokens.size()));
    if (made == Tokens(0)) continue;
    Live& live = live_.at(produced.request);
    StepShare& share = work[live.model];
    share.output += made;
    if (!prompts.contains(produced.request)) {
      share.decoded += made;
      share.context += live.length;
    }
    live.length += made;
  }
  counts_.add(work, outcome.elapsed);
}

/// Runs that may be another's already do not count.
Micros WorkerCore::prefill_ahead() const {
  Micros ahead{0};
  for (const auto& [request, live] : live_) {
    if (!live.prefill_told && !live.in_doubt()) ahead += std::max(live.estimated - live.prefill_time, Micros(0));
  }
  return ahead;
}

ModelLoad WorkerCore::load_of(const ModelId& model) const {
  ModelLoad load = counts_.load(model);
  const InstanceStatus status = runner_->status(model);
  load.waiting = status.waiting;
  load.running = status.running;
  load.kv_used = status.kv_used;
  for (const auto& [request, incoming] : incoming_) {
    if (incoming.model == model) load.kv_reserved += incoming.pages;
  }
  return load;
}

void WorkerCore::tell_telemetry(Instant now, Outbox& out) {
  const std::vector<ActorName> hearers = keeper_.telemetry_hearers();
  if (hearers.empty()) return;
  Telemetry letter = counts_.letter(now);
  letter.worker = options_.name;
  letter.incarnation = options_.incarnation;
  letter.prefill_ahead = prefill_ahead();
  const WorkerMemory memory = runner_->memory();
  letter.pages = Pages(memory.pool / options_.page_bytes);
  letter.pages_used = Pages((memory.weights + memory.kv) / options_.page_bytes);
  letter.transfers = keeper_.transfers();
  letter.moved = keeper_.moved();
  for (const auto& [model, folder] : options_.models) {
    if (keeper_.residency(model) == Residency::active) letter.models.push_back(load_of(model));
  }
  for (const ActorName& hearer : hearers) out.send(hearer, letter);
}

}  // namespace sangam
