// What the autoscaler hears, what it wants, and who gets which post.
#include "actors/autoscaler/autoscaler_core.hpp"

#include <algorithm>
#include <tuple>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr Timer kPeriod{1};

constexpr WorkerRole kRoles[] = {WorkerRole::prefill, WorkerRole::decode, WorkerRole::mixed};

std::int64_t& of_role(Need& need, WorkerRole role) {
  return role == WorkerRole::prefill ? need.prefill : role == WorkerRole::decode ? need.decode : need.mixed;
}

}  // namespace

AutoscalerCore::AutoscalerCore(AutoscalerOptions options) : options_(std::move(options)) {
  SANGAM_ASSERT(options_.sizing != nullptr && options_.budget != nullptr);
  plan_.by = options_.name;
  plan_.epoch = options_.epoch;
}

void AutoscalerCore::start(Instant now, Outbox& out) { out.set_timer(kPeriod, now + options_.period); }

void AutoscalerCore::on(const Forecast& forecast, Instant now, Outbox&) {
  for (const ModelForecast& model : forecast.models) {
    ModelState& state = models_[model.model];
    state.forecast = model;
    if (model.requests_per_second <= 0.0) continue;
    state.used = true;
    state.used_at = now;
  }
}

void AutoscalerCore::on(const QueueStatus& status, Instant now, Outbox&) {
  ModelState& state = models_[status.model];
  state.forecast.model = status.model;
  state.waiting = status.waiting;
  state.running = status.running;
  if (status.waiting + status.running == 0) return;
  state.used = true;
  state.used_at = now;
}

void AutoscalerCore::on(const InstanceState& state, Instant, Outbox&) {
  // What is about to leave counts as gone.
  workers_[state.worker].models[state.model] = state.target;
}

void AutoscalerCore::on(const Telemetry& telemetry, Instant, Outbox&) {
  WorkerView& worker = workers_[telemetry.worker];
  worker.devices = telemetry.devices;
  worker.prefill_ahead = telemetry.prefill_ahead;
  worker.live = 0;
  for (const ModelLoad& load : telemetry.models) worker.live += load.waiting + load.running;
}

void AutoscalerCore::on(const Plan& plan, Instant now, Outbox& out) {
  if (plan.by == options_.name || plan.epoch < steady_epoch_) return;
  steady_epoch_ = plan.epoch;
  std::set<ModelId> models(plan.models.begin(), plan.models.end());
  std::set<ActorName> workers(plan.workers.begin(), plan.workers.end());
  if (models == steady_models_ && workers == steady_workers_) return;
  steady_models_ = std::move(models);
  steady_workers_ = std::move(workers);
  plan_anew(now);  // Placement goes first: what it takes is given up at once.
  say(now, out);
}

void AutoscalerCore::on(const ActorLost& lost, Instant now, Outbox& out) {
  if (workers_.erase(lost.actor) == 0) return;
  release(lost.actor);
  plan_anew(now);
  say(now, out);
}

void AutoscalerCore::wake(Timer, Instant now, Outbox& out) {
  plan_anew(now);
  say(now, out);
  out.set_timer(kPeriod, now + options_.period);
}

void AutoscalerCore::plan_anew(Instant now) {
  std::map<std::int64_t, std::vector<ActorName>> classes;
  std::map<ModelId, std::int64_t> class_of;
  for (const auto& [name, worker] : workers_) {
    for (const auto& [model, residency] : worker.models) class_of[model] = worker.devices;
    if (!steady_workers_.contains(name)) classes[worker.devices].push_back(name);
  }
  release_if([&](const ActorName& worker, const Post& post) {
    return steady_workers_.contains(worker) || steady_models_.contains(post.model);
  });
  std::map<std::int64_t, std::vector<ModelId>> models_of;
  for (auto& [id, model] : models_) {
    model.given = {};
    const bool is_live = model.used && now < model.used_at + options_.idle_to_zero;
    if (!is_live) model.wanted.clear();
    if (is_live && class_of.contains(id) && !steady_models_.contains(id)) models_of[class_of[id]].push_back(id);
  }
  for (auto& [devices, models] : models_of) {
    for (const ModelId& id : models) {
      ModelState& model = models_.at(id);
      const Need need = options_.sizing(
          {model.forecast, model.waiting + model.running, model.held, model.waiting}, options_.sizes);
      model.given = steadied(model, need, now);
    }
    share_out(models, std::int64_t(classes[devices].size()));
  }
  release_if([&](const ActorName&, const Post& post) { return models_.at(post.model).given.total() == 0; });
  for (const auto& [devices, models] : models_of) assign(models, classes[devices]);
}

/// As many as were needed within `hold`, of the kinds that are needed now: up at once, down late.
Need AutoscalerCore::steadied(ModelState& model, Need need, Instant now) const {
  while (!model.wanted.empty() && model.wanted.front().first + options_.hold <= now) model.wanted.pop_front();
  while (!model.wanted.empty() && model.wanted.back().second.total() <= need.total()) model.wanted.pop_back();
  model.wanted.emplace_back(now, need);
  const std::int64_t most = model.wanted.front().second.total();
  (need.mixed > 0 ? need.mixed : need.prefill) += most - need.total();
  return need;
}

void AutoscalerCore::share_out(const std::vector<ModelId>& models, std::int64_t workers) {
  std::vector<Claim> claims;
  for (const ModelId& id : models) {
    const ModelState& model = models_.at(id);
    claims.push_back({model.given, model.forecast.requests_per_second, model.forecast.prefill_attainment,
                      model.forecast.decode_attainment, model.forecast.mixed_attainment});
  }
  const std::vector<Need> given = options_.budget(claims, workers);
  for (std::size_t i = 0; i < models.size(); ++i) models_.at(models[i]).given = given[i];
}

void AutoscalerCore::assign(const std::vector<ModelId>& models, const std::vector<ActorName>& workers) {
  std::set<ActorName> free(workers.begin(), workers.end());
  for (const ModelId& id : models) {
    for (const WorkerRole role : kRoles) trim(id, role, of_role(models_.at(id).given, role));
  }
  for (const auto& [worker, post] : posts_) free.erase(worker);
  for (const ModelId& id : models) {
    for (const WorkerRole role : kRoles) fill(id, role, of_role(models_.at(id).given, role), free);
  }
}

std::int64_t& AutoscalerCore::count(const Post& post) {
  return of_role(models_.at(post.model).held, post.role);
}

void AutoscalerCore::post(const ActorName& worker, Post post) {
  ++count(post);
  posts_.emplace(worker, std::move(post));
}

void AutoscalerCore::release(const ActorName& worker) {
  const auto held = posts_.find(worker);
  if (held == posts_.end()) return;
  --count(held->second);
  posts_.erase(held);
}

template <class Goes>
void AutoscalerCore::release_if(Goes goes) {
  for (auto held = posts_.begin(); held != posts_.end();) {
    const auto next = std::next(held);
    if (goes(held->first, held->second)) release(ActorName(held->first));
    held = next;
  }
}

/// Who has the least to finish goes.
void AutoscalerCore::trim(const ModelId& model, WorkerRole role, std::int64_t wanted) {
  if (count({model, role}) <= wanted) return;
  std::vector<std::pair<std::int64_t, ActorName>> held;
  for (const auto& [worker, post] : posts_) {
    if (post == Post{model, role}) held.emplace_back(workers_.at(worker).live, worker);
  }
  std::sort(held.begin(), held.end());
  for (std::size_t i = 0; std::int64_t(held.size() - i) > wanted; ++i) release(held[i].second);
}

/// Where the model is already, then where nothing else is, then where least is to be finished.
void AutoscalerCore::fill(const ModelId& model, WorkerRole role, std::int64_t wanted, std::set<ActorName>& free) {
  std::int64_t missing = wanted - count({model, role});
  if (missing <= 0) return;
  std::vector<std::tuple<bool, bool, std::int64_t, ActorName>> order;
  for (const ActorName& name : free) {
    const WorkerView& worker = workers_.at(name);
    const auto own = worker.models.find(model);
    if (own == worker.models.end()) continue;
    const bool is_there = own->second == Residency::active;
    const bool is_occupied = std::any_of(worker.models.begin(), worker.models.end(), [&](const auto& held) {
      return held.first != model && held.second == Residency::active;
    });
    order.emplace_back(!is_there, is_occupied, worker.live, name);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [is_away, is_occupied, live, name] : order) {
    if (missing-- <= 0) break;
    post(name, {model, role});
    free.erase(name);
  }
}

/// The least busy first: it gives up the least for being read.
std::vector<ActorName> AutoscalerCore::sources_of(const ModelId& model, const ActorName& but) const {
  constexpr std::size_t kSourcesMax = 4;
  std::vector<std::pair<Micros, ActorName>> order;
  for (const auto& [name, worker] : workers_) {
    const auto held = worker.models.find(model);
    if (name == but || held == worker.models.end() || held->second != Residency::active) continue;
    order.emplace_back(worker.prefill_ahead, name);
  }
  std::sort(order.begin(), order.end());
  std::vector<ActorName> sources;
  for (const auto& [load, name] : order) {
    if (sources.size() < kSourcesMax) sources.push_back(name);
  }
  return sources;
}

Plan AutoscalerCore::drafted() const {
  Plan plan;
  plan.by = options_.name;
  plan.epoch = plan_.epoch;
  for (const auto& [id, model] : models_) {
    if (!steady_models_.contains(id)) plan.models.push_back(id);
  }
  for (const auto& [name, worker] : workers_) {
    if (!steady_workers_.contains(name)) plan.workers.push_back(name);
  }
  for (const auto& [worker, post] : posts_) plan.instances.push_back({post.model, worker, post.role, {}, 0});
  return plan;
}

void AutoscalerCore::say(Instant now, Outbox& out) {
  Plan next = drafted();
  const bool same = next.models == plan_.models && next.workers == plan_.workers &&
                    std::equal(next.instances.begin(), next.instances.end(), plan_.instances.begin(),
                               plan_.instances.end(), [](const PlannedInstance& a, const PlannedInstance& b) {
                                 return a.worker == b.worker && a.model == b.model && a.role == b.role;
                               });
  if (same && now < said_at_ + options_.repeat) return;
  for (PlannedInstance& instance : next.instances) {
    const bool is_there = workers_.at(instance.worker).models.at(instance.model) == Residency::active;
    if (!is_there) instance.sources = sources_of(instance.model, instance.worker);
  }
  ++next.epoch;
  plan_ = std::move(next);
  said_at_ = now;
  for (const ActorName& hearer : options_.hearers) out.send(hearer, plan_);
}

}  // namespace sangam
