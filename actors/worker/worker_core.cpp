// The worker's decisions: which runs to take, when one has ended, whom to tell.
#include "actors/worker/worker_core.hpp"

#include <algorithm>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr Timer kStatus{1};
constexpr std::size_t kEndedMax = 4096;
const ActorName kScheduler("scheduler");

bool is_gateway(const ActorName& actor) {
  return actor.text().starts_with("gateway/");
}

}  // namespace

WorkerCore::WorkerCore(WorkerOptions options, std::unique_ptr<Runner> runner)
    : options_(std::move(options)), runner_(std::move(runner)) {
  for (const auto& [model, folder] : options_.models) to_load_.push_back(model);
}

void WorkerCore::start(Instant now, Outbox& out) {
  out.set_timer(kStatus, now + options_.status_every);
}

void WorkerCore::wake(Timer timer, Instant now, Outbox& out) {
  if (timer != kStatus) return;
  tell_status(false, out);
  out.set_timer(kStatus, now + options_.status_every);
}

void WorkerCore::on(const ActorFound& found, Instant, Outbox& out) {
  if (is_gateway(found.actor)) {
    gateways_.insert(found.actor);
  } else if (found.actor != kScheduler) {
    return;
  }
  for (const auto& [model, served] : served_) announce(model, found.actor, out);
}

/// A gateway takes its clients with it. A queue takes its requests: their gateways submit them anew.
void WorkerCore::on(const ActorLost& lost, Instant, Outbox& out) {
  gateways_.erase(lost.actor);
  cancel_where(
      [&](RequestId, const Live& live) {
        return live.tokens_to == lost.actor || queue_of(live.model) == lost.actor;
      },
      out);
}

void WorkerCore::on(const Cancel& cancel, Instant, Outbox& out) {
  const auto live = live_.find(cancel.request);
  if (live == live_.end()) return;
  TokensProduced last;
  last.request = cancel.request;
  last.attempt = live->second.attempt;
  last.first = live->second.next_token;
  last.finish = FinishReason::cancelled;
  out.send(live->second.tokens_to, std::move(last));
  cancel_where([&](RequestId request, const Live&) { return request == cancel.request; }, out);
}

void WorkerCore::on(const Run& run, Instant, Outbox& out) {
  if (!is_news(run)) return;
  cancel_where([&](RequestId request, const Live&) { return request == run.request; }, out);
  if (auto taken = take(run); !taken) refuse(run, taken.error(), out);
}

/// Not an attempt, or an echo of one, that is behind us.
bool WorkerCore::is_news(const Run& run) const {
  if (const auto live = live_.find(run.request); live != live_.end())
    return run.attempt > live->second.attempt;
  const auto ended = ended_.find(run.request);
  return ended == ended_.end() || run.attempt > ended->second;
}

Result<void> WorkerCore::take(const Run& run) {
  const std::string here = options_.name.text() + ": model " + run.model.text();
  const auto served = served_.find(run.model);
  if (served == served_.end()) {
    const bool loads = std::find(to_load_.begin(), to_load_.end(), run.model) != to_load_.end();
    return loads ? make_error(ErrorCode::unavailable, here + " is still being loaded; try again")
                 : make_error(ErrorCode::not_found, here + " is not one of this worker's");
  }
  if (!served->second.instance) {
    return make_error(ErrorCode::unavailable,
                      here + " could not be loaded: " + served->second.instance.error().context);
  }
  const std::int64_t taken_max = options_.running_max + options_.waiting_max;
  if (std::int64_t(live_.size()) >= taken_max) {
    return make_error(ErrorCode::unavailable,
                      options_.name.text() + ": runs taken=" + std::to_string(live_.size()) + " of at most " +
                          std::to_string(taken_max) + "; try again later");
  }
  if (auto added = runner_->add(run); !added) return added;
  Live live{
      .attempt = run.attempt, .model = run.model, .tokens_to = run.tokens_to, .estimated = run.estimated};
  live.next_token = run.generated.size();
  live_.emplace(run.request, std::move(live));
  return {};
}

void WorkerCore::refuse(const Run& run, const Error& error, Outbox& out) {
  TokensProduced failed;
  failed.request = run.request;
  failed.attempt = run.attempt;
  failed.first = run.generated.size();
  failed.finish = FinishReason::failed;
  failed.code = error.code;
  failed.why = error.context;
  out.log(LogLevel::warning, "worker.run_refused",
          {{"request", std::to_string(std::uint64_t(run.request))},
           {"model", run.model.text()},
           {"why", error.context}});
  out.send(run.tokens_to, std::move(failed));
  live_.emplace(run.request, Live{.attempt = run.attempt, .model = run.model, .tokens_to = run.tokens_to});
  end(run.request, FinishReason::failed, out);
}

template <class Which>
void WorkerCore::cancel_where(Which which, Outbox& out) {
  std::vector<RequestId> chosen;
  for (const auto& [request, live] : live_) {
    if (which(request, live)) chosen.push_back(request);
  }
  std::sort(chosen.begin(), chosen.end());  // the order must not depend on the hash
  for (const RequestId request : chosen) {
    runner_->cancel(request);
    end(request, FinishReason::cancelled, out);
  }
  if (!chosen.empty()) tell_status(true, out);
}

void WorkerCore::end(RequestId request, FinishReason finish, Outbox& out) {
  const auto entry = live_.find(request);
  SANGAM_ASSERT(entry != live_.end(), "ended twice", request);
  const Live& live = entry->second;
  const RunEnded ended{request, live.attempt, options_.name, live.model, finish, live.produced};
  out.send(queue_of(live.model), ended);
  out.send(kScheduler, ended);
  remember(request, live.attempt);
  live_.erase(entry);
}

void WorkerCore::remember(RequestId request, Attempt attempt) {
  if (ended_.insert_or_assign(request, attempt).second) ended_order_.push_back(request);
  if (ended_order_.size() <= kEndedMax) return;
  ended_.erase(ended_order_.front());
  ended_order_.pop_front();
}

void WorkerCore::step(Instant now, Outbox& out) {
  if (!to_load_.empty()) {
    load_next(out);
    return;  // the load took time that `now` does not know
  }
  if (!runner_->has_work()) return;
  StepOutcome outcome = runner_->step();
  // Tokens first: their readers wait for them, and the others' mailboxes may cost the thread its processor.
  std::vector<std::pair<RequestId, FinishReason>> ended;
  for (TokensProduced& produced : outcome.produced) {
    if (produced.finish != FinishReason::none) ended.emplace_back(produced.request, produced.finish);
    pass_on(produced, out);
  }
  account(outcome.prefills, now, now + outcome.elapsed, out);
  for (const auto& [request, finish] : ended) end(request, finish, out);
  tell_status(true, out);
}

/// Each stretch of time in which prefills progressed is divided among them by their rows, so the times of all
/// prefills add up to the time that they took together, running decodes and other models' turns included.
void WorkerCore::account(const std::vector<PrefillRows>& prefills, Instant began, Instant ended,
                         Outbox& out) {
  if (prefills.empty()) return;
  Instant first = began;
  Tokens rows;
  for (const PrefillRows& part : prefills) {
    Live& live = live_.at(part.request);
    if (live.prefilled == Tokens{0}) live.prefill_began = began;
    first = std::min(first, live.prefill_began);
    rows += part.rows;
  }
  const Micros stretch = ended - std::max(first, prefill_free_);
  prefill_free_ = ended;
  for (const PrefillRows& part : prefills) {
    Live& live = live_.at(part.request);
    live.prefilled += part.rows;
    live.prefill_time += stretch * part.rows.count() / rows.count();
    if (!part.done) continue;
    out.send(kScheduler, PrefillFinished{part.request, live.attempt, options_.name, live.model,
                                         live.estimated, live.prefill_time, live.prefilled});
  }
}

void WorkerCore::pass_on(TokensProduced& produced, Outbox& out) {
  Live& live = live_.at(produced.request);
  live.produced += Tokens(std::int64_t(produced.tokens.size()));
  live.next_token = produced.first + produced.tokens.size();
  if (produced.finish == FinishReason::failed) {
    out.log(LogLevel::error, "worker.run_failed",
            {{"request", std::to_string(std::uint64_t(produced.request))},
             {"model", live.model.text()},
             {"why", produced.why}});
  }
  out.send(live.tokens_to, std::move(produced));
}

void WorkerCore::load_next(Outbox& out) {
  const ModelId model = to_load_.front();
  to_load_.pop_front();
  const auto [entry, added] = served_.emplace(model, Served{runner_->load(model), {}});
  SANGAM_ASSERT(added, "model configured twice", model);
  if (const Result<LoadedInstance>& instance = entry->second.instance; instance) {
    out.log(LogLevel::info, "worker.loaded",
            {{"model", model.text()},
             {"kv_capacity_tokens", std::to_string(runner_->kv_capacity(model).count())},
             {"prefill_tokens_per_second", std::to_string(std::int64_t(instance->prefill_tokens_per_second))},
             {"weights", instance->weights_digest}});
    for (const std::string& warning : instance->warnings)
      out.log(LogLevel::warning, "worker.checkpoint_odd", {{"model", model.text()}, {"what", warning}});
  } else {
    out.log(LogLevel::error, "worker.load_failed",
            {{"model", model.text()}, {"why", instance.error().context}});
  }
  // Each load leaves less room to those before it, so the last one tells of all again.
  for (const auto& [other, served] : served_) {
    if (other != model && !to_load_.empty()) continue;
    for (const ActorName& hearer : audience()) announce(other, hearer, out);
  }
}

void WorkerCore::announce(const ModelId& model, const ActorName& to, Outbox& out) const {
  const Result<LoadedInstance>& instance = served_.at(model).instance;
  if (!instance) {
    out.send(to, InstanceGone{options_.name, model, options_.incarnation, instance.error().context});
    return;
  }
  out.send(to, InstanceReady{.worker = options_.name,
                             .model = model,
                             .incarnation = options_.incarnation,
                             .running_max = options_.running_max,
                             .kv_capacity = runner_->kv_capacity(model),
                             .prefill_tokens_per_second = instance->prefill_tokens_per_second,
                             .weights_digest = instance->weights_digest});
}

std::vector<ActorName> WorkerCore::audience() const {
  std::vector<ActorName> hearers{kScheduler};
  hearers.insert(hearers.end(), gateways_.begin(), gateways_.end());
  return hearers;
}

void WorkerCore::tell_status(bool only_falls_to_zero, Outbox& out) {
  const auto falls = [](auto told, auto now) { return told != decltype(told){} && now == decltype(now){}; };
  for (auto& [model, served] : served_) {
    if (!served.instance) continue;
    const InstanceStatus& told = served.told;
    if (only_falls_to_zero && told.running == 0 && told.waiting == 0 && told.kv_used == Pages{0}) continue;
    InstanceStatus status = runner_->status(model);
    status.worker = options_.name;
    if (only_falls_to_zero && !falls(told.running, status.running) && !falls(told.waiting, status.waiting) &&
        !falls(told.kv_used, status.kv_used))
      continue;
    for (const ActorName& gateway : gateways_) out.send(gateway, status);
    served.told = std::move(status);
  }
}

}  // namespace sangam
