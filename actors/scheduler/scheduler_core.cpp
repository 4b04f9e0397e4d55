// What the scheduler hears, and how it keeps its picture of the world. The decisions are in decisions.cpp.
#include "actors/scheduler/scheduler_core.hpp"

#include <algorithm>
#include <string>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr Timer kWants{2};
constexpr Millis kWantsEvery{1'000};
const ActorName kLifecycle("lifecycle");

}  // namespace

SchedulerCore::SchedulerCore(SchedulerOptions options)
    : options_(options), fleet_(options.fleet), quotes_(options.quotes) {
  SANGAM_ASSERT(options.policy != nullptr);
  SANGAM_ASSERT(options.floor_share >= 0.0 && options.floor_share < 1.0, options.floor_share);
  SANGAM_ASSERT(options.plan_jobs_max > 0);
  SANGAM_ASSERT(options.quotes.coverage > 0.0 && options.quotes.coverage < 1.0, options.quotes.coverage);
}

ModelIndex SchedulerCore::index_of(const ModelId& model) {
  const auto [place, is_new] = model_indices_.try_emplace(model, ModelIndex(models_.size()));
  if (is_new) {
    models_.push_back({model, queue_of(model)});
    queues_.emplace(queue_of(model), place->second);
    backlog_.resize(ModelIndex(models_.size()));
  }
  return place->second;
}

void SchedulerCore::remeasure(ModelIndex model) {
  backlog_.remeasure_all(model, [this](const PrefillJob& job) { return fleet_.shortest(job); });
  models_[model].held = fleet_.is_held(model);
}

void SchedulerCore::note_want(ModelIndex index, Instant now, Outbox& out) {
  Model& model = models_[index];
  const bool wanted = !model.held && backlog_.size(index) > 0;
  if (wanted == model.wanted) return;
  model.wanted = wanted;
  out.send(kLifecycle, Wanted{model.id, wanted ? std::int64_t(backlog_.size(index)) : 0});
  if (!wanted || repeats_wants_) return;
  repeats_wants_ = true;
  out.set_timer(kWants, now + kWantsEvery);
}

/// A letter may have been lost with its reader.
void SchedulerCore::repeat_wants(Instant now, Outbox& out) {
  repeats_wants_ = false;
  for (ModelIndex i = 0; i < models_.size(); ++i) {
    note_want(i, now, out);
    if (!models_[i].wanted) continue;
    out.send(kLifecycle, Wanted{models_[i].id, std::int64_t(backlog_.size(i))});
    repeats_wants_ = true;
  }
  if (repeats_wants_) out.set_timer(kWants, now + kWantsEvery);
}

void SchedulerCore::wake(Timer timer, Instant now, Outbox& out) {
  if (timer == kWants) return repeat_wants(now, out);
  alarm_at_ = Instant::max();
  decide(now, out);
}

void SchedulerCore::on(const Enqueued& enqueued, Instant now, Outbox& out) {
  if (const WaitingJob* waiting = backlog_.find(enqueued.request)) {
    if (waiting->attempt > enqueued.attempt) return;
    backlog_.remove(enqueued.request);
  } else if (const auto run = fleet_.run_of(enqueued.request)) {
    const bool is_the_run = run->attempt == enqueued.attempt && run->prefilled;
    if (run->attempt > enqueued.attempt || is_the_run) return;
    // The queue says that it waits: the dispatch was lost, or the run is void.
    fleet_.forget(enqueued.request, now);
  }
  WaitingJob job;
  job.request = enqueued.request;
  job.attempt = enqueued.attempt;
  job.output_max = enqueued.output_max;
  job.rank = enqueued.rank;
  job.prefill.tokens = std::max(enqueued.prefill_tokens, Tokens(0));
  job.prefill.model = index_of(enqueued.model);
  if (enqueued.service_class == ServiceClass::deadline) {
    job.prefill.deadline = deadline_in(enqueued.ttft_in, now);
  }
  job.length = fleet_.shortest(job.prefill);
  quote(job, now, out);
  backlog_.add(job);
  note_want(job.prefill.model, now, out);
  reconsider(now, out);
}

void SchedulerCore::on(const Withdrawn& withdrawn, Instant now, Outbox& out) {
  const auto run = fleet_.run_of(withdrawn.request);
  if (backlog_.find(withdrawn.request)) {
    backlog_.remove(withdrawn.request);
    note_want(index_of(withdrawn.model), now, out);
  } else if (run && !run->prefilled) {
    fleet_.forget(withdrawn.request, now);  // The dispatch crossed the withdrawal; no worker will see it.
  }
  reconsider(now, out);
}

void SchedulerCore::on(const InstanceReady& ready, Instant now, Outbox& out) {
  const ModelIndex model = index_of(ready.model);
  const bool is_new = !fleet_.has(ready.worker, model);
  if (!fleet_.add(ready, model)) return;
  remeasure(model);
  note_want(model, now, out);
  // Workers say it again whenever their room has changed.
  out.log(is_new ? LogLevel::info : LogLevel::debug, "scheduler.instance_ready",
          {{"worker", ready.worker.text()}, {"model", ready.model.text()}});
  reconsider(now, out);
}

void SchedulerCore::on(const InstanceGone& gone, Instant now, Outbox& out) {
  const ModelIndex model = index_of(gone.model);
  if (!fleet_.remove(gone, model)) return;
  remeasure(model);
  note_want(model, now, out);
  out.log(LogLevel::info, "scheduler.instance_gone",
          {{"worker", gone.worker.text()}, {"model", gone.model.text()}, {"why", gone.why}});
  reconsider(now, out);
}

void SchedulerCore::on(const PrefillFinished& finished, Instant now, Outbox& out) {
  const auto run = fleet_.run_of(finished.request);
  if (run && run->attempt == finished.attempt) quotes_.first_token(finished.request, now);
  fleet_.prefill_finished(finished, index_of(finished.model), now);
  reconsider(now, out);
}

void SchedulerCore::on(const RunEnded& ended, Instant now, Outbox& out) {
  fleet_.end(ended.request, ended.attempt, now);
  reconsider(now, out);
}

void SchedulerCore::on(const RunMoved& moved, Instant now, Outbox& out) {
  fleet_.move(moved, now);
  reconsider(now, out);
}

void SchedulerCore::on(const ActorLost& lost, Instant now, Outbox& out) {
  const std::vector<ModelIndex> models = fleet_.lose(lost.actor);
  for (ModelIndex model : models) {
    remeasure(model);
    note_want(model, now, out);
  }
  if (!models.empty()) {
    out.log(LogLevel::warning, "scheduler.worker_lost", {{"worker", lost.actor.text()}, {"why", lost.why}});
  }
  if (const auto queue = queues_.find(lost.actor); queue != queues_.end()) {
    backlog_.remove_all(queue->second);
    fleet_.forget_unfinished(queue->second, now);
  }
  reconsider(now, out);
}

}  // namespace sangam
