// What others hear about a worker's models and memory, and who they are.
#include <algorithm>
#include <iterator>

#include "actors/worker/model_keeper.hpp"

namespace sangam {
namespace {

const ActorName kScheduler("scheduler");
const ActorName kLifecycle("lifecycle");
const ActorName kOracle("oracle");
const ActorName kPlacement("placement");
const ActorName kAutoscaler("autoscaler");

// Who hears what beside the gateways, which hear all.
const std::set<ActorName> kHearStates{kLifecycle, kPlacement, kAutoscaler};
const std::set<ActorName> kHearMemory{kLifecycle, kPlacement};
const std::set<ActorName> kHearTables{kOracle, kPlacement};
const std::set<ActorName> kHearTelemetry{kOracle, kPlacement, kAutoscaler};

std::vector<ActorName> both(const std::set<ActorName>& some, const std::set<ActorName>& others) {
  std::vector<ActorName> both;
  std::set_intersection(some.begin(), some.end(), others.begin(), others.end(), std::back_inserter(both));
  return both;
}

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
  const ActorName& actor = found.actor;
  const bool hears_all = is_gateway(actor);
  if (hears_all) gateways_.insert(actor);
  scheduler_is_here_ |= actor == kScheduler;
  if (actor == kLifecycle || kHearTelemetry.contains(actor)) planners_.insert(actor);
  for (const auto& [model, holding] : holdings_) {
    if (hears_all || actor == kScheduler) announce(model, actor, out);
    if (hears_all || kHearStates.contains(actor)) tell_state(model, actor, out);
    if (hears_all || kHearTables.contains(actor)) tell_table(model, actor, out);
  }
  if (!hears_all && !kHearMemory.contains(actor)) return;
  WorkerMemory memory = runner_.memory();
  memory.worker = options_.name;
  out.send(actor, std::move(memory));
}

void ModelKeeper::on(const ActorLost& lost) {
  gateways_.erase(lost.actor);
  planners_.erase(lost.actor);
  if (lost.actor == kScheduler) scheduler_is_here_ = false;
}

std::vector<ActorName> ModelKeeper::telemetry_hearers() const {
  std::vector<ActorName> hearers = both(planners_, kHearTelemetry);
  hearers.insert(hearers.end(), gateways_.begin(), gateways_.end());
  return hearers;
}

std::int64_t ModelKeeper::transfers() const {
  return std::count_if(holdings_.begin(), holdings_.end(), [](const auto& entry) { return entry.second.job.has_value(); });
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
                               .role = role_});
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
  for (const ActorName& planner : both(planners_, kHearStates)) tell_state(model, planner, out);
  for (const ActorName& gateway : gateways_) tell_state(model, gateway, out);
}

/// Nothing of a model that has not been read.
void ModelKeeper::tell_table(const ModelId& model, const ActorName& to, Outbox& out) const {
  if (holdings_.at(model).residency > Residency::cold) out.send(to, runner_.table(model));
}

void ModelKeeper::tell_table_to_all(const ModelId& model, Outbox& out) const {
  for (const ActorName& planner : both(planners_, kHearTables)) tell_table(model, planner, out);
  for (const ActorName& gateway : gateways_) tell_table(model, gateway, out);
}

void ModelKeeper::tell_memory(Outbox& out) {
  WorkerMemory memory = runner_.memory();
  if (told_memory_ && same(*told_memory_, memory)) return;
  memory.worker = options_.name;
  for (const ActorName& planner : both(planners_, kHearMemory)) out.send(planner, memory);
  for (const ActorName& gateway : gateways_) out.send(gateway, memory);
  told_memory_ = std::move(memory);
}

}  // namespace sangam
