// Seats, KV shares and lines of the workers: taken at dispatch, given back when a run ends or is lost.
#include "actors/scheduler/fleet.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

bool by_name(const Worker* a, const Worker* b) { return a->place < b->place; }

}  // namespace

Micros Worker::length(const PrefillJob& job) const {
  constexpr double kForEver = 1e15;  // 31 years: what no deadline allows still fits the clock.
  return Micros(std::int64_t(std::ceil(std::min(cost[job.model].micros(job.tokens), kForEver))));
}

bool Fleet::add(const InstanceReady& ready, ModelIndex model) {
  const auto known = workers_.find(ready.worker);
  if (known != workers_.end() && known->second.incarnation > ready.incarnation) return false;
  if (known != workers_.end() && known->second.incarnation < ready.incarnation) lose(ready.worker);
  const auto [entry, is_new_worker] = workers_.try_emplace(ready.worker);
  Worker& worker = entry->second;
  if (is_new_worker) number();
  worker.name = ready.worker;
  worker.incarnation = ready.incarnation;
  worker.role = ready.role;
  worker.running_max = std::max<std::int64_t>(ready.running_max, 1);
  worker.kv_spent = false;
  const double prior = ready.prefill_tokens_per_second >= 1.0 ? ready.prefill_tokens_per_second
                                                              : options_.prefill_tokens_per_second;
  const auto [place, is_new] = worker.instances.try_emplace(
      model, Instance{ready.kv_capacity, CostModel(prior, options_.step_overhead)});
  place->second.kv_capacity = ready.kv_capacity;
  if (worker.cost.size() <= model) worker.cost.resize(model + 1);
  if (holders_.size() <= model) holders_.resize(model + 1);
  if (is_new) {
    auto& holders = holders_[model];
    holders.insert(std::upper_bound(holders.begin(), holders.end(), &worker, by_name), &worker);
  }
  price(model);
  return true;
}

void Fleet::number() {
  std::size_t place = 0;
  for (auto& [name, worker] : workers_) worker.place = place++;
}

/// What is left of the worker's name in the lists goes first.
void Fleet::leave(std::map<ActorName, Worker>::iterator worker) {
  for (const auto& [model, instance] : worker->second.instances) std::erase(holders_[model], &worker->second);
  workers_.erase(worker);
}

std::span<Worker* const> Fleet::holders_of(ModelIndex model) const {
  if (model >= holders_.size()) return {};
  return holders_[model];
}

std::vector<Worker*> Fleet::holders_of(std::span<const ModelIndex> models) const {
  std::vector<Worker*> all;
  for (const ModelIndex model : models) {
    const auto holders = holders_of(model);
    all.insert(all.end(), holders.begin(), holders.end());
  }
  if (models.size() < 2) return all;
  std::sort(all.begin(), all.end(), by_name);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

/// Workers that are there to decode get prompts of a model only while nobody else holds it.
void Fleet::price(ModelIndex model) {
  const auto holders = holders_of(model);
  const bool others =
      std::any_of(holders.begin(), holders.end(), [](const Worker* w) { return w->role != WorkerRole::decode; });
  for (Worker* worker : holders) {
    const bool takes = worker->role != WorkerRole::decode || !others;
    worker->cost[model] = takes ? worker->instances.at(model).costs.cost() : PrefillCost{};
  }
}

bool Fleet::remove(const InstanceGone& gone, ModelIndex model) {
  const auto place = workers_.find(gone.worker);
  if (place == workers_.end() || place->second.incarnation > gone.incarnation) return false;
  Worker& worker = place->second;
  if (worker.instances.erase(model) == 0) return false;
  std::erase(holders_[model], &worker);
  worker.cost[model] = PrefillCost{};
  if (worker.running == 0 && worker.instances.empty()) leave(place);
  price(model);
  return true;
}

std::vector<ModelIndex> Fleet::lose(const ActorName& name) {
  std::vector<ModelIndex> models;
  const auto worker = workers_.find(name);
  if (worker == workers_.end()) return models;
  for (const auto& [model, instance] : worker->second.instances) models.push_back(model);
  std::erase_if(runs_, [&](const auto& run) {
    if (run.second.worker != name) return false;
    no_longer_expected(run.second);
    return true;
  });
  leave(worker);
  for (const ModelIndex model : models) price(model);
  return models;
}

Tokens Fleet::kv_need(const WaitingJob& job) const {
  return job.prefill.tokens + std::min(job.output_max, options_.output_reserved);
}

double Fleet::kv_share(const Worker& worker, ModelIndex model, Tokens need) {
  const auto capacity = double(worker.instances.at(model).kv_capacity.count());
  return capacity > 0.0 ? double(need.count()) / capacity : 0.0;
}

bool Fleet::fits(const Worker& worker, const WaitingJob& job) const {
  return worker.running == 0 || worker.kv_used + kv_share(worker, job.prefill.model, kv_need(job)) <= 1.0;
}

Micros Fleet::start(Worker& worker, const WaitingJob& job, Instant now) {
  SANGAM_ASSERT(worker.has_seat(), worker.name, worker.running, worker.running_max, worker.kv_spent);
  const Micros estimate = worker.length(job.prefill);
  const Tokens need = kv_need(job);
  const double kv = kv_share(worker, job.prefill.model, need);
  const Run run{{job.attempt, false}, job.prefill.model, worker.name, job.prefill.tokens, need, kv};
  const bool is_new = runs_.emplace(job.request, run).second;
  SANGAM_ASSERT(is_new, job.request, job.attempt, worker.name);
  worker.running += 1;
  worker.kv_used += kv;
  worker.line.add(job.request, estimate, now);
  return estimate;
}

void Fleet::prefill_finished(const PrefillFinished& finished, ModelIndex model, Instant now) {
  const auto run = runs_.find(finished.request);
  if (run == runs_.end() || run->second.state.attempt != finished.attempt) return;
  if (run->second.state.prefilled || run->second.worker != finished.worker) return;
  run->second.state.prefilled = true;
  Worker& worker = workers_.at(finished.worker);
  worker.line.finish(finished.request, now);
  const auto instance = worker.instances.find(model);
  if (instance == worker.instances.end()) return;
  instance->second.costs.learn(run->second.tokens, finished.computed, finished.measured);
  price(model);
}

std::vector<ActorName> Fleet::takers(const Worker& giver, const WaitingJob& job) const {
  constexpr std::size_t kTakersMax = 4;
  std::vector<ActorName> names;
  if (giver.role != WorkerRole::prefill) return names;
  std::vector<std::tuple<std::int64_t, double, ActorName>> order;
  for (const Worker* worker : holders_of(job.prefill.model)) {
    if (worker->role != WorkerRole::decode) continue;
    const double kv = worker->kv_used + kv_share(*worker, job.prefill.model, kv_need(job));
    order.emplace_back(worker->running + worker->expected, kv, worker->name);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [running, kv, name] : order) {
    if (names.size() < kTakersMax) names.push_back(name);
  }
  return names;
}

void Fleet::expect(RequestId request, const ActorName& taker) {
  const auto worker = workers_.find(taker);
  if (worker == workers_.end()) return;
  runs_.at(request).taker = taker;
  ++worker->second.expected;
}

void Fleet::no_longer_expected(const Run& run) {
  if (!run.taker) return;
  const auto taker = workers_.find(*run.taker);
  if (taker != workers_.end()) taker->second.expected = std::max<std::int64_t>(taker->second.expected - 1, 0);
}

void Fleet::move(const RunMoved& moved, Instant now) {
  const auto place = runs_.find(moved.request);
  if (place == runs_.end() || place->second.state.attempt != moved.attempt) return;
  if (place->second.worker != moved.from) return;
  Run run = place->second;
  // Its prefill has ended, if we have not heard of that yet.
  if (!run.state.prefilled) workers_.at(run.worker).line.finish(moved.request, now);
  place->second.state.prefilled = run.state.prefilled = true;
  release(place, now);
  const auto taker = workers_.find(moved.to);
  if (taker == workers_.end() || !taker->second.instances.contains(run.model)) return;
  run.worker = moved.to;
  run.kv = kv_share(taker->second, run.model, run.kv_tokens);
  run.taker.reset();
  taker->second.running += 1;
  taker->second.kv_used += run.kv;
  runs_.emplace(moved.request, std::move(run));
}

void Fleet::release(std::unordered_map<RequestId, Run>::iterator place, Instant now) {
  const Run& run = place->second;
  no_longer_expected(run);
  Worker& worker = workers_.at(run.worker);
  if (!run.state.prefilled) worker.line.drop(place->first, now);
  worker.running -= 1;
  worker.kv_used = worker.running == 0 ? 0.0 : worker.kv_used - run.kv;
  worker.kv_spent = false;
  if (worker.running == 0 && worker.instances.empty()) leave(workers_.find(run.worker));
  runs_.erase(place);
}

void Fleet::end(RequestId request, Attempt attempt, Instant now) {
  const auto run = runs_.find(request);
  if (run != runs_.end() && run->second.state.attempt == attempt) release(run, now);
}

void Fleet::forget(RequestId request, Instant now) {
  const auto run = runs_.find(request);
  if (run != runs_.end()) release(run, now);
}

void Fleet::forget_unfinished(ModelIndex model, Instant now) {
  for (auto run = runs_.begin(); run != runs_.end();) {
    const auto next = std::next(run);
    if (run->second.model == model && !run->second.state.prefilled) release(run, now);
    run = next;
  }
}

std::optional<RunState> Fleet::run_of(RequestId request) const {
  const auto run = runs_.find(request);
  return run == runs_.end() ? std::nullopt : std::optional(run->second.state);
}

bool Fleet::has(const ActorName& worker, ModelIndex model) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.instances.contains(model);
}

bool Fleet::is_held(ModelIndex model) const {
  const auto holders = holders_of(model);
  return std::any_of(holders.begin(), holders.end(), [&](const Worker* worker) { return worker->holds(model); });
}

std::size_t Fleet::takers_of_prompts(ModelIndex model) const {
  const auto holders = holders_of(model);
  return std::size_t(std::count_if(holders.begin(), holders.end(), [&](const Worker* w) { return w->holds(model); }));
}

Instant Fleet::first_free(ModelIndex model, Instant now) const {
  Instant first = Instant::max();
  for (const Worker* worker : holders_of(model)) {
    if (worker->holds(model)) first = std::min(first, worker->line.free_at(now));
  }
  return first;
}

Instant Fleet::earliest_end(const PrefillJob& job, Instant now) const {
  Instant earliest = Instant::max();
  for (const Worker* worker : holders_of(job.model)) {
    if (worker->holds(job.model)) earliest = std::min(earliest, worker->line.free_at(now) + worker->length(job));
  }
  return earliest;
}

Micros Fleet::shortest(const PrefillJob& job) const {
  Micros shortest = Micros::max();
  for (const Worker* worker : holders_of(job.model)) {
    if (worker->holds(job.model)) shortest = std::min(shortest, worker->length(job));
  }
  return shortest == Micros::max() ? Micros(0) : shortest;
}

}  // namespace sangam
