// What the scheduler decides: refusals, the floor share, the plan and what it dispatches, the next wake-up.
#include <algorithm>
#include <string>

#include "actors/scheduler/scheduler_core.hpp"

namespace sangam {
namespace {

constexpr Timer kDecide{1};
/// An overdue prefill moves its worker's availability with the clock; looking more often shows nothing new.
constexpr Micros kAlarmDistance{1'000};

}  // namespace

void SchedulerCore::reconsider(Instant now, Outbox& out) {
  if (backlog_.size() > options_.prompt_jobs_max && planned_at_ > now - options_.plan_interval) {
    set_alarm(std::min(alarm_at_, planned_at_ + options_.plan_interval), out);
  } else {
    decide(now, out);
  }
}

void SchedulerCore::decide(Instant now, Outbox& out) {
  if (backlog_.size() == 0) return;
  planned_at_ = now;
  refuse_late(now, out);
  pay_floor_shares(now, out);
  while (!dispatch_plan(now, out)) {
  }
  refuse_late(now, out);  // What was dispatched has taken the last chance of others.
  set_alarm(next_occasion(now), out);
}

void SchedulerCore::refuse_late(Instant now, Outbox& out) {
  for (const ModelIndex model : backlog_.waiting_models()) {
    const Instant first_free = fleet_.first_free(model, now);
    const Instant start = first_free == Instant::max() ? now : first_free;
    for (const WaitingJob* job = backlog_.most_urgent(model); job && job->latest_start() < start;
         job = backlog_.most_urgent(model)) {
      const Instant end = fleet_.earliest_end(job->prefill, now);
      if (end == Instant::max() || end > job->prefill.deadline) {
        refuse(*job, end, now, out);
      } else {
        backlog_.remeasure(job->request, fleet_.shortest(job->prefill));  // The instance has become faster.
      }
    }
  }
}

void SchedulerCore::refuse(const WaitingJob& job, Instant earliest_end, Instant now, Outbox& out) {
  const Model& model = models_[job.prefill.model];
  const bool is_held = earliest_end != Instant::max();
  const auto earliest_in = is_held ? std::chrono::ceil<Millis>(earliest_end - now) : Millis(0);
  const auto late_by = std::chrono::ceil<Millis>((is_held ? earliest_end : now) - job.prefill.deadline);
  out.log(LogLevel::info, "scheduler.refused",
          {{"model", model.id.text()},
           {"request", std::to_string(std::uint64_t(job.request))},
           {"why", is_held ? "late" : "no instance"},
           {"by", std::to_string(late_by.count()) + "ms"}});
  out.send(model.queue, CannotBeOnTime{job.request, job.attempt, earliest_in});
  backlog_.remove(job.request);
}

/// What is owed is paid before the plan, else a crowd with deadlines would keep the others waiting for ever.
void SchedulerCore::pay_floor_shares(Instant now, Outbox& out) {
  for (Worker* worker : fleet_.holders_of(backlog_.waiting_models())) {
    while (worker->floor_owed > Micros(0) && is_open(*worker, now)) {
      const auto next = backlog_.unhurried(unhurried_models(*worker), 1);
      if (next.empty()) worker->floor_owed = Micros(0);  // Nobody waits, nothing is owed.
      if (next.empty() || worker->length(next.front()->prefill) > worker->floor_owed) break;
      if (!dispatch_row(*worker, next, now, out)) break;
    }
  }
}

bool SchedulerCore::dispatch_plan(Instant now, Outbox& out) {
  const Openings open = openings(now);
  if (open.models_now.empty()) return true;
  std::vector<const WaitingJob*> waiting = backlog_.hurried(open.models, options_.plan_jobs_max);
  const auto unhurried = backlog_.unhurried(open.models_now, options_.plan_jobs_max);
  waiting.insert(waiting.end(), unhurried.begin(), unhurried.end());

  std::vector<PrefillJob> jobs;
  for (const WaitingJob* job : waiting) jobs.push_back(job->prefill);
  std::vector<PrefillMachine> machines;
  for (const Worker* worker : open.workers) {
    machines.push_back({worker->line.free_at(now), worker->running, worker->cost});
  }
  const PrefillPlan plan = options_.policy({jobs, machines, now + options_.look_ahead, options_.seed});

  bool all_fit = true;
  for (MachineIndex i = 0; i < plan.size(); ++i) {
    if (!is_open(*open.workers[i], now)) continue;
    std::vector<const WaitingJob*> row;
    for (JobIndex j : plan[i]) row.push_back(waiting[j]);
    all_fit &= dispatch_row(*open.workers[i], row, now, out);
  }
  return all_fit;
}

/// Gives the worker the first of the row, until it is busy beyond the look-ahead or has no seat left.
bool SchedulerCore::dispatch_row(Worker& worker, const std::vector<const WaitingJob*>& row, Instant now,
                                 Outbox& out) {
  for (const WaitingJob* job : row) {
    if (!is_open(worker, now)) break;
    // Policies other than LST-IMH put jobs also where they would be late; there they do not go.
    const PrefillJob& prefill = job->prefill;
    if (prefill.has_deadline() && worker.line.free_at(now) + worker.length(prefill) > prefill.deadline) continue;
    if (!fleet_.fits(worker, *job)) {
      worker.kv_spent = true;
      return false;
    }
    dispatch(worker, *job, now, out);
  }
  return true;
}

void SchedulerCore::dispatch(Worker& worker, const WaitingJob& job, Instant now, Outbox& out) {
  std::vector<ActorName> takers = fleet_.takers(worker, job);
  const Micros estimate = fleet_.start(worker, job, now);
  if (!takers.empty()) fleet_.expect(job.request, takers.front());
  if (!job.prefill.has_deadline()) {
    worker.floor_owed = std::max(worker.floor_owed - estimate, Micros(0));
    backlog_.served(job.prefill.model, estimate);
  } else if (!unhurried_models(worker).empty()) {
    const double per_hurried = options_.floor_share / (1.0 - options_.floor_share);
    worker.floor_owed += Micros(std::int64_t(double(estimate.count()) * per_hurried));
  }
  out.send(models_[job.prefill.model].queue,
           Dispatch{job.request, job.attempt, worker.name, estimate, std::move(takers)});
  backlog_.remove(job.request);
}

bool SchedulerCore::is_open(const Worker& worker, Instant now) const {
  return worker.has_seat() && worker.line.free_at(now) <= now + options_.look_ahead;
}

std::vector<ModelIndex> SchedulerCore::unhurried_models(const Worker& worker) const {
  std::vector<ModelIndex> models;
  for (const auto& [model, instance] : worker.instances) {
    if (worker.holds(model) && backlog_.has_unhurried(model)) models.push_back(model);
  }
  return models;
}

SchedulerCore::Openings SchedulerCore::openings(Instant now) {
  Openings openings;
  std::vector<char> held(models_.size(), 0);
  std::vector<char> held_now(models_.size(), 0);
  const std::vector<ModelIndex> waiting = backlog_.waiting_models();
  for (Worker* worker : fleet_.holders_of(waiting)) {
    if (!worker->has_seat()) continue;
    openings.workers.push_back(worker);
    const bool is_now = is_open(*worker, now);
    for (const auto& [model, instance] : worker->instances) {
      if (!worker->holds(model)) continue;
      held[model] = 1;
      if (is_now) held_now[model] = 1;
    }
  }
  for (const ModelIndex model : waiting) {
    if (held[model]) openings.models.push_back(model);
    if (held_now[model]) openings.models_now.push_back(model);
  }
  return openings;
}

/// The first moment at which time alone changes what can be decided: a worker comes within the look-ahead, or
/// a request has missed its latest start.
Instant SchedulerCore::next_occasion(Instant now) const {
  Instant next = Instant::max();
  const std::vector<ModelIndex> waiting = backlog_.waiting_models();
  for (const ModelIndex model : waiting) {
    if (const WaitingJob* job = backlog_.most_urgent(model)) {
      next = std::min(next, job->latest_start() + Micros(1));
    }
  }
  for (const Worker* worker : fleet_.holders_of(waiting)) {
    if (!worker->has_seat() || is_open(*worker, now)) continue;
    const bool is_wanted =
        std::any_of(worker->instances.begin(), worker->instances.end(), [&](const auto& held) {
          return worker->holds(held.first) && backlog_.size(held.first) > 0;
        });
    if (is_wanted) next = std::min(next, worker->line.free_at(now) - options_.look_ahead);
  }
  return next == Instant::max() ? next : std::max(next, now + kAlarmDistance);
}

void SchedulerCore::set_alarm(Instant at, Outbox& out) {
  if (at == Instant::max() || at == alarm_at_) return;
  alarm_at_ = at;
  out.set_timer(kDecide, at);
}

}  // namespace sangam
