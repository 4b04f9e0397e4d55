// What others hear about a worker's models and memory, and who they are.
#include <algorithm>

#include "actors/worker/model_keeper.hpp"

namespace sangam {
namespace {

const ActorName kScheduler("scheduler");
const ActorName kLifecycle("lifecycle");

bool is_gateway(const ActorName& actor) {
  return actor.text().starts_with("gateway/");
}

bool same(const WorkerMemory& a, const WorkerMemory& b) {
  const auto same_kv = [](const ModelKv& x, const ModelKv& y) {
    return x.model == y.model && x.kv == y.kv && x.cached == y.cached;
  };
  return a.weights == b.weights && a.kv == b.kv && a.cached == b.cached && a.free == b.free &&
         a.shared == b.shared && a.host == b.host &&
         std::equal(a.models.begin(), a.models.end(), b.models.begin(), b.models.end(), same_kv);
}

}  // namespace

void ModelKeeper::on(const ActorFound& found, Outbox& out) {
  const bool hears_all = is_gateway(found.actor);
  if (hears_all) gateways_.insert(found.actor);
  scheduler_is_here_ |= found.actor == kScheduler;
  lifecycle_is_here_ |= found.actor == kLifecycle;
  for (const auto& [model, holding] : holdings_) {
    if (hears_all || found.actor == kScheduler) announce(model, found.actor, out);
    if (hears_all || found.actor == kLifecycle) tell_state(model, found.actor, out);
  }
  if (!hears_all && found.actor != kLifecycle) return;
  WorkerMemory memory = runner_.memory();
  memory.worker = options_.name;
  out.send(found.actor, std::move(memory));
}

void ModelKeeper::on(const ActorLost& lost) {
  gateways_.erase(lost.actor);
  if (lost.actor == kScheduler) scheduler_is_here_ = false;
  if (lost.actor == kLifecycle) lifecycle_is_here_ = false;
}

/// Nothing is said of a model that has never been tried.
void ModelKeeper::announce(const ModelId& model, const ActorName& to, Outbox& out) const {
  const Holding& holding = holdings_.at(model);
  if (is_active(model)) {
    const LoadedInstance instance = runner_.instance(model);
    out.send(to, InstanceReady{.worker = options_.name,
                               .model = model,
                               .incarnation = options_.incarnation,
                               .running_max = options_.running_max,
                               .kv_capacity = runner_.kv_capacity(model),
                               .prefill_tokens_per_second = instance.prefill_tokens_per_second,
                               .weights_digest = instance.weights_digest,
                               .role = options_.role});
  } else if (holding.residency == Residency::active || holding.failure) {
    out.send(to, InstanceGone{options_.name, model, options_.incarnation,
                              holding.failure ? holding.failure->context : "it is put to sleep"});
  }
}

void ModelKeeper::announce_to_all(const ModelId& model, Outbox& out) const {
  if (scheduler_is_here_) announce(model, kScheduler, out);
  for (const ActorName& gateway : gateways_) announce(model, gateway, out);
}

void ModelKeeper::tell_state(const ModelId& model, const ActorName& to, Outbox& out) const {
  const Holding& holding = holdings_.at(model);
  const Footprint footprint = runner_.footprint(model);
  InstanceState state;
  state.worker = options_.name;
  state.model = model;
  state.incarnation = options_.incarnation;
  state.residency = holding.residency;
  state.target = holding.job ? holding.job->target : holding.residency;
  state.live = runs_.live(model);
  state.pinned = holding.pinned;
  state.weights = footprint.weights;
  state.missing = footprint.missing;
  state.own = footprint.own;
  state.host = footprint.host;
  if (holding.failure) {
    state.code = holding.failure->code;
    state.why = holding.failure->context;
  }
  out.send(to, std::move(state));
}

void ModelKeeper::tell_state_to_all(const ModelId& model, Outbox& out) const {
  if (lifecycle_is_here_) tell_state(model, kLifecycle, out);
  for (const ActorName& gateway : gateways_) tell_state(model, gateway, out);
}

void ModelKeeper::tell_memory(Outbox& out) {
  WorkerMemory memory = runner_.memory();
  if (told_memory_ && same(*told_memory_, memory)) return;
  memory.worker = options_.name;
  if (lifecycle_is_here_) out.send(kLifecycle, memory);
  for (const ActorName& gateway : gateways_) out.send(gateway, memory);
  told_memory_ = std::move(memory);
}

}  // namespace sangam
