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

}  // namespace

WorkerCore::WorkerCore(WorkerOptions options, std::unique_ptr<Runner> runner)
    : options_(std::move(options)), runner_(std::move(runner)), keeper_(options_, *runner_, *this) {}

void WorkerCore::start(Instant now, Outbox& out) {
  for (const std::string& note : runner_->notes()) out.log(LogLevel::warning, "worker.memory_odd", {{"what", note}});
  counts_.start(now);
  keeper_.start(out);
  if (options_.role == WorkerRole::prefill && options_.holder.empty()) {
    out.log(LogLevel::warning, "worker.hands_nothing_over",
            {{"why", "it has no holder, so others cannot reach its memory; it decodes its prompts itself"}});
  }
  out.set_timer(kStatus, now + options_.status_every);
}

void WorkerCore::wake(Timer timer, Instant now, Outbox& out) {
  if (timer == ModelKeeper::kDrain) return keeper_.wake(now, out);
  if (timer == kPull) return pull(now, out);
  tell_status(false, out);
  keeper_.tell_memory(out);
  tell_telemetry(now, out);
  out.set_timer(kStatus, now + options_.status_every);
}

void WorkerCore::on(const Order& order, Instant now, Outbox& out) {
  keeper_.on(order, now, out);
}

void WorkerCore::on(const ActorFound& found, Instant, Outbox& out) {
  present_.insert(found.actor);
  keeper_.on(found, out);
  for (auto& [request, run] : std::exchange(early_, {})) {
    if (run.tokens_to == found.actor) {
      begin(run, out);
    } else {
      early_.emplace(request, std::move(run));
    }
  }
}

/// A gateway takes its clients with it. A queue takes its requests: their gateways submit them anew.
void WorkerCore::on(const ActorLost& lost, Instant, Outbox& out) {
  present_.erase(lost.actor);
  keeper_.on(lost);
  drop_early([&](const Run& run) { return run.tokens_to == lost.actor || queue_of(run.model) == lost.actor; }, out);
  cancel_where(
      [&](RequestId, const Live& live) {
        return live.tokens_to == lost.actor || queue_of(live.model) == lost.actor;
      },
      out);
  drop_incoming_where([&](const Incoming& incoming) { return incoming.from == lost.actor; });
  reserver_lost(lost.actor, out);
  queue_lost(lost.actor, out);
  taker_lost(lost.actor, out);
}

void WorkerCore::on(const Cancel& cancel, Instant, Outbox& out) {
  drop_incoming(cancel.request);
  drop_early([&](const Run& run) { return run.request == cancel.request; }, out);
  const auto live = live_.find(cancel.request);
  if (live == live_.end()) return;
  out.send(live->second.tokens_to, last_word(cancel.request, FinishReason::cancelled, Error{ErrorCode::none, {}}));
  cancel_where([&](RequestId request, const Live&) { return request == cancel.request; }, out);
}

/// What is said to a gateway that this node has not found yet is lost, the last word included. Its queue has found it,
/// so it is here in a moment, or the queue cancels.
void WorkerCore::on(const Run& run, Instant, Outbox& out) {
  if (!is_news(run.request, run.attempt)) return;
  drop_incoming(run.request);
  end_older(run, out);
  const bool is_full = std::int64_t(early_.size()) >= options_.running_max + options_.waiting_max;
  if (present_.contains(run.tokens_to) || is_full) return begin(run, out);
  early_.emplace(run.request, run);
}

void WorkerCore::drop_early(const std::function<bool(const Run&)>& which, Outbox& out) {
  for (auto& [request, run] : std::exchange(early_, {})) {
    if (which(run)) {
      end_untaken(run, FinishReason::cancelled, out);
    } else {
      early_.emplace(request, std::move(run));
    }
  }
}

void WorkerCore::begin(const Run& run, Outbox& out) {
  if (auto taken = take(run)) {
    keeper_.run_began(run.model, out);
  } else {
    refuse(run, taken.error(), out);
  }
}

/// Not an attempt, or an echo of one, that is behind us.
bool WorkerCore::is_news(RequestId request, Attempt attempt) const {
  if (const auto early = early_.find(request); early != early_.end()) return attempt > early->second.attempt;
  if (const auto live = live_.find(request); live != live_.end()) return attempt > live->second.attempt;
  const auto ended = ended_.find(request);
  return ended == ended_.end() || attempt > ended->second;
}

/// Also where another worker has been asked to take it: its queue stops it there.
void WorkerCore::end_older(const Run& run, Outbox& out) {
  drop_early([&](const Run& early) { return early.request == run.request; }, out);
  if (const auto older = live_.find(run.request); older != live_.end()) {
    take_back(run.request, out);
    older->second.outgoing.reset();
  }
  cancel_where([&](RequestId request, const Live&) { return request == run.request; }, out);
}

Result<void> WorkerCore::room_for(const ModelId& model) const {
  if (auto admitted = keeper_.admission(model); !admitted) return admitted;
  const std::int64_t taken_max = options_.running_max + options_.waiting_max;
  const auto taken = std::int64_t(live_.size() + incoming_.size());
  if (taken >= taken_max) {
    return make_error(ErrorCode::unavailable,
                      options_.name.text() + ": runs taken=" + std::to_string(taken) + " of at most " +
                          std::to_string(taken_max) + "; try again later");
  }
  return {};
}

Result<void> WorkerCore::take(const Run& run) {
  if (auto room = room_for(run.model); !room) return room;
  const bool leaves = can_hand_over(run);
  if (!leaves && !run.decode_on.empty()) ++self_decodes_[run.model];
  if (auto added = leaves ? runner_->add_prefill(run) : runner_->add(run); !added) return added;
  Live live{
      .attempt = run.attempt, .model = run.model, .tokens_to = run.tokens_to, .estimated = run.estimated};
  live.length = length_of(run);
  live.next_token = run.generated.size();
  if (leaves) {
    live.outgoing = Outgoing{{.run = run, .said = {}, .from = options_.name, .incarnation = options_.incarnation},
                             {run.decode_on.begin(), run.decode_on.end()}};
    live.outgoing->letter.run.decode_on.clear();
  }
  enter(run.request, std::move(live));
  return {};
}

Tokens WorkerCore::length_of(const Run& run) {
  return Tokens(std::int64_t(run.prompt.size() + run.generated.size()));
}

void WorkerCore::enter(RequestId request, Live live) {
  ++live_of_[live.model];
  live_.emplace(request, std::move(live));
}

std::int64_t WorkerCore::live(const ModelId& model) const {
  const auto count = live_of_.find(model);
  return count == live_of_.end() ? 0 : count->second;
}

/// A gateway that hears of an unavailable worker submits the request again, with the tokens that it has.
void WorkerCore::end_all(const ModelId& model, AtDeadline how, Outbox& out) {
  const bool moves_on = how == AtDeadline::migrate;
  const Error why = moves_on ? make_error(ErrorCode::unavailable,
                                          options_.name.text() + " lets model " + model.text() + " go")
                             : Error{ErrorCode::none, {}};
  for (auto& [request, live] : live_) {
    if (live.model != model) continue;
    TokensProduced last = last_word(request, moves_on ? FinishReason::failed : FinishReason::cancelled, why);
    if (live.in_doubt()) {
      live.outgoing->last_word = std::move(last);
    } else {
      out.send(live.tokens_to, std::move(last));
    }
  }
  cancel_where([&](RequestId, const Live& live) { return live.model == model; }, out);
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
  end_untaken(run, FinishReason::failed, out);
}

void WorkerCore::end_untaken(const Run& run, FinishReason finish, Outbox& out) {
  enter(run.request, Live{.attempt = run.attempt, .model = run.model, .tokens_to = run.tokens_to});
  end(run.request, finish, out);
}

TokensProduced WorkerCore::last_word(RequestId request, FinishReason finish, const Error& why) const {
  const Live& live = live_.at(request);
  TokensProduced last;
  last.request = request;
  last.attempt = live.attempt;
  last.first = live.next_token;
  last.finish = finish;
  last.code = why.code;
  last.why = why.context;
  return last;
}

std::vector<RequestId> WorkerCore::live_where(const Which& which) const {
  std::vector<RequestId> chosen;
  for (const auto& [request, live] : live_) {
    if (which(request, live)) chosen.push_back(request);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

/// Who may have gone to another worker already ends when that one has answered.
void WorkerCore::cancel_where(const Which& which, Outbox& out) {
  const std::vector<RequestId> chosen = live_where(which);
  for (const RequestId request : chosen) {
    Live& live = live_.at(request);
    if (live.in_doubt()) {
      live.outgoing->given_up = true;
      continue;
    }
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
  if (live.outgoing) {
    take_back(request, out);
    runner_->let_go(request);
  }
  forget(request, out);
}

void WorkerCore::forget(RequestId request, Outbox& out) {
  const auto entry = live_.find(request);
  remember(request, entry->second.attempt);
  const ModelId model = entry->second.model;
  live_.erase(entry);
  if (--live_of_[model] == 0) live_of_.erase(model);
  keeper_.run_ended(model, out);
}

void WorkerCore::remember(RequestId request, Attempt attempt) {
  if (ended_.insert_or_assign(request, attempt).second) ended_order_.push_back(request);
  if (ended_order_.size() <= kEndedMax) return;
  ended_.erase(ended_order_.front());
  ended_order_.pop_front();
}

void WorkerCore::step(Instant now, Outbox& out) {
  // In turn, so that neither a load holds up streams for longer than a piece of it takes, nor they the load.
  std::vector<ReserveKv> begun = runner_->take_begun();
  for (ReserveKv& wish : begun) reserve(std::move(wish), out);
  if (!begun.empty()) return;  // The letters go first: who is asked copies while the next step computes.
  const bool moves = keeper_.busy() && !(moved_ && runner_->has_work());
  if (moves) drop_incoming_where([&](const Incoming& incoming) { return !keeper_.is_active(incoming.model); });
  if (moves) keeper_.step(runner_->has_work(), out);
  moved_ = moves && keeper_.busy();
  if (moves) return;  // It took time that `now` does not know.
  if (!runner_->has_work()) return;
  StepOutcome outcome = runner_->step();
  count_work(outcome);
  // Tokens first: their readers wait for them, and the others' mailboxes may cost the thread its processor.
  std::vector<std::pair<RequestId, FinishReason>> ended;
  std::vector<RequestId> leaving;
  for (TokensProduced& produced : outcome.produced) {
    Live& live = live_.at(produced.request);
    if (produced.finish != FinishReason::none) {
      ended.emplace_back(produced.request, produced.finish);
    } else if (live.outgoing) {
      leaving.push_back(produced.request);
      live.outgoing->letter.said = produced;
    }
    keeper_.run_produced(live.model, now + outcome.elapsed);
    pass_on(produced, out);
  }
  account(outcome.prefills, now, now + outcome.elapsed, out);
  for (const auto& [request, finish] : ended) end(request, finish, out);
  for (const RequestId request : leaving) offer(request, out);
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
    if (!part.done || std::exchange(live.prefill_told, true)) continue;
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

void WorkerCore::tell_status(bool only_falls_to_zero, Outbox& out) {
  const auto falls = [](auto told, auto now) { return told != decltype(told){} && now == decltype(now){}; };
  for (const auto& [model, folder] : options_.models) {
    if (!keeper_.is_active(model)) continue;
    InstanceStatus& told = told_[model];
    if (only_falls_to_zero && told.running == 0 && told.waiting == 0 && told.kv_used == Pages{0}) continue;
    InstanceStatus status = runner_->status(model);
    status.worker = options_.name;
    if (const auto count = self_decodes_.find(model); count != self_decodes_.end())
      status.self_decodes = count->second;
    if (only_falls_to_zero && !falls(told.running, status.running) && !falls(told.waiting, status.waiting) &&
        !falls(told.kv_used, status.kv_used))
      continue;
    for (const ActorName& gateway : keeper_.gateways()) out.send(gateway, status);
    told = std::move(status);
  }
}

}  // namespace sangam
