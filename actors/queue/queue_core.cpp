// What each message does to a request. A request is in one of three states: it waits, it runs on a worker,
// or it was interrupted and waits for its gateway to submit it again.
#include "actors/queue/queue_core.hpp"

#include <algorithm>

#include "actors/queue/spans.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

/// More than any context; keeps sums and virtual times far from their limits.
constexpr Tokens kTokensMax{std::int64_t(1) << 32};

Tokens size_of(const std::vector<TokenId>& tokens) {
  return Tokens(std::int64_t(tokens.size()));
}

Tokens cost_of(const Submit& submit) {
  const Tokens output = std::clamp(submit.sampling.max_tokens, Tokens(0), kTokensMax);
  return size_of(submit.prompt) + output;
}

Lane lane_of(ServiceClass service_class) {
  if (service_class == ServiceClass::deadline) return Lane::none;
  return service_class == ServiceClass::normal ? Lane::normal : Lane::best_effort;
}

bool hears_status(const ActorName& actor) {
  return actor.text().starts_with("gateway") || actor.text() == "oracle" || actor.text() == "autoscaler";
}

}  // namespace

QueueCore::QueueCore(QueueOptions options)
    : options_(std::move(options)), admission_(options_), order_(options_.best_effort_percent) {
  told_.model = options_.model;
}

void QueueCore::start(Instant now, Outbox& out) {
  out.set_timer(kStatus, now + options_.status_every);
}

void QueueCore::on(const Submit& submit, Instant now, Outbox& out) {
  const auto known = entries_.find(submit.request);
  if (known != entries_.end()) {
    replace(known->second, submit, now, out);
  } else {
    // A later attempt was accepted before, by this queue or by the one that died; it is owed its end.
    auto refusal =
        submit.attempt > 1 ? std::nullopt : admission_.refusal(submit.tenant, cost_of(submit), now);
    if (auto shut = closed(now)) refusal = std::move(shut);
    if (refusal) {
      ++told_.refused;
      out.log(LogLevel::info, "queue.refused",
              {{"model", options_.model.text()},
               {"tenant", submit.tenant.text()},
               {"why", refusal->error.context}});
      out.send(submit.tokens_to, Refused{submit.request, submit.attempt, refusal->error.code,
                                         std::move(refusal->error.context), refusal->retry_after});
    } else {
      admit(submit, now, out);
    }
  }
  conclude(now, out);
}

void QueueCore::admit(const Submit& submit, Instant now, Outbox& out) {
  Entry& entry = entries_[submit.request];
  entry.service_class = submit.service_class;
  entry.cost = cost_of(submit);
  if (submit.attempt == 1) {
    const auto tokens = std::uint64_t(submit.prompt.size());
    ++told_.arrived;
    told_.input_tokens += tokens;
    told_.input_tokens_squared += double(tokens) * double(tokens);
  }
  take_attempt(entry, submit, now);
  entry.place = {.lane = lane_of(entry.service_class),
                 .tenant = submit.tenant,
                 .weight = options_of(submit.tenant, options_).weight,
                 .cost = entry.cost};
  order_.enter(submit.request, entry.place);
  let_wait(entry, now);
  out.send(submit.tokens_to, Accepted{submit.request, submit.attempt});
  announce(entry, now, out);
}

/// A newer attempt takes the older one's place, whatever that is doing; it has waited and paid already.
void QueueCore::replace(Entry& entry, const Submit& submit, Instant now, Outbox& out) {
  if (submit.attempt > entry.submit.attempt) {
    if (entry.state == State::waiting) {
      leave_waiting(entry, now);
    } else {
      if (entry.state == State::running) {
        if (!entry.cancelled) out.send(entry.worker, Cancel{submit.request});
        drop_membership(running_on_, entry.worker, submit.request);
        --running_;
      }
      order_.resume(submit.request, entry.place);
    }
    drop_membership(held_by_, entry.submit.tokens_to, submit.request);
    take_attempt(entry, submit, now);
    let_wait(entry, now);
    announce(entry, now, out);
  }
  if (submit.attempt == entry.submit.attempt)
    out.send(submit.tokens_to, Accepted{submit.request, submit.attempt});
}

/// Once a client has tokens, no deadline of the first token is left, and expiry would break a promise.
void QueueCore::take_attempt(Entry& entry, const Submit& submit, Instant now) {
  const bool begun = !submit.generated.empty();
  entry.submit = submit;
  entry.cancelled = false;
  entry.prefill = size_of(submit.prompt) + size_of(submit.generated);
  entry.submitted_at = now;
  entry.expires_at = begun || submit.expires_in <= Millis(0) ? kNever : now + sane(submit.expires_in);
  if (begun && entry.service_class == ServiceClass::deadline) entry.service_class = ServiceClass::normal;
  entry.due_at = entry.service_class == ServiceClass::deadline ? now + sane(submit.ttft_in) : kNever;
  held_by_[submit.tokens_to].insert(submit.request);
}

void QueueCore::let_wait(Entry& entry, Instant now) {
  entry.state = State::waiting;
  admission_.add(entry.submit.tenant, entry.cost, now);
  set_alarm(entry, std::min(entry.expires_at, entry.due_at));
}

void QueueCore::leave_waiting(Entry& entry, Instant now) {
  admission_.remove(entry.submit.tenant, entry.cost, now);
  set_alarm(entry, kNever);
}

void QueueCore::on(const Dispatch& dispatch, Instant now, Outbox& out) {
  Entry* entry = waiting(dispatch.request);
  if (!entry) {
    withdraw(dispatch.request, out);
  } else if (!present_.contains(entry->submit.tokens_to)) {
    cancel(*entry, now, out);  // Its gateway was lost before the request came.
  } else if (overdue(*entry, now, out)) {
    // Refused or lowered, and the scheduler has been told.
  } else if (entry->submit.attempt != dispatch.attempt) {
    withdraw(dispatch.request, out);
    announce(*entry, now, out);
  } else if (present_.contains(dispatch.worker)) {
    run(*entry, dispatch, now, out);
  } else {
    // The scheduler knows the worker already, we do not yet: announced at once, it would come straight back.
    withdraw(dispatch.request, out);
    held_back_.insert(dispatch.request);
  }
  conclude(now, out);
}

void QueueCore::announce_held_back(Instant now, Outbox& out) {
  for (const RequestId request : std::exchange(held_back_, {}))
    if (const Entry* entry = waiting(request)) announce(*entry, now, out);
}

void QueueCore::run(Entry& entry, const Dispatch& dispatch, Instant now, Outbox& out) {
  leave_waiting(entry, now);
  order_.serve(dispatch.request, entry.place);
  entry.state = State::running;
  entry.worker = dispatch.worker;
  ++running_;
  running_on_[dispatch.worker].insert(dispatch.request);
  Submit& submit = entry.submit;
  Run run;
  run.request = submit.request;
  run.attempt = submit.attempt;
  run.model = options_.model;
  run.tenant = submit.tenant;
  run.service_class = entry.service_class;
  run.prompt = std::exchange(submit.prompt, {});
  run.generated = std::exchange(submit.generated, {});
  run.sampling = submit.sampling;
  run.tokens_to = submit.tokens_to;
  run.estimated = dispatch.estimated;
  run.decode_on = dispatch.decode_on;
  out.send(dispatch.worker, std::move(run));
  entry.queued = std::chrono::duration_cast<Millis>(now - entry.submitted_at);
  out.send(submit.tokens_to, Started{submit.request, submit.attempt, entry.worker, entry.queued});
}

void QueueCore::on(const Quoted& quoted, Instant, Outbox& out) {
  const auto found = entries_.find(quoted.request);
  if (found == entries_.end() || found->second.submit.attempt != quoted.attempt) return;
  out.send(found->second.submit.tokens_to, quoted);
}

void QueueCore::on(const RunEnded& end, Instant now, Outbox& out) {
  const auto found = entries_.find(end.request);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.state != State::running || entry.submit.attempt != end.attempt || entry.worker != end.worker)
    return;
  admission_.completed(entry.submit.tenant, entry.cost, now);
  const auto produced = std::uint64_t(std::max<std::int64_t>(end.produced.count(), 0));
  ++told_.ended;
  told_.output_tokens += produced;
  told_.output_tokens_squared += double(produced) * double(produced);
  forget(entry, entry.prefill + end.produced);
  conclude(now, out);
}

/// The giver answers for the run until it knows that we know. A run that nobody waits for any more is stopped where it has gone; unless a later attempt runs there, by which it
/// has ended already.
void QueueCore::on(const RunMoved& moved, Instant, Outbox& out) {
  out.send(moved.from, moved);
  const auto found = entries_.find(moved.request);
  const bool runs = found != entries_.end() && found->second.state == State::running;
  if (!runs || found->second.submit.attempt != moved.attempt || found->second.worker != moved.from) {
    if (!runs || found->second.worker != moved.to) out.send(moved.to, Cancel{moved.request});
    return;
  }
  Entry& entry = found->second;
  drop_membership(running_on_, entry.worker, moved.request);
  running_on_[moved.to].insert(moved.request);
  entry.worker = moved.to;
  if (entry.cancelled) out.send(moved.to, Cancel{moved.request});
  // The gateway is to look for the loss of the one that has it now.
  out.send(entry.submit.tokens_to, Started{moved.request, moved.attempt, moved.to, entry.queued});
}

void QueueCore::interrupt(Entry& entry, const std::string& why, Instant now, Outbox& out) {
  if (entry.cancelled) return forget(entry, entry.prefill);
  const Submit& submit = entry.submit;
  drop_membership(running_on_, entry.worker, submit.request);
  --running_;
  entry.state = State::interrupted;
  set_alarm(entry, now + options_.interrupted_kept);
  out.log(LogLevel::warning, "queue.interrupted",
          {{"model", options_.model.text()}, {"worker", entry.worker.text()}, {"why", why}});
  out.send(submit.tokens_to, Interrupted{submit.request, submit.attempt, why});
}

void QueueCore::on(const Cancel& message, Instant now, Outbox& out) {
  const auto found = entries_.find(message.request);
  if (found == entries_.end()) return;
  cancel(found->second, now, out);
  conclude(now, out);
}

void QueueCore::cancel(Entry& entry, Instant now, Outbox& out) {
  const RequestId request = entry.submit.request;
  if (entry.state == State::running) {
    if (!entry.cancelled) out.send(entry.worker, Cancel{request});
    entry.cancelled = true;
    return;
  }
  if (entry.state == State::waiting) {
    leave_waiting(entry, now);
    order_.withdraw(request, entry.place);
    withdraw(request, out);
  }
  forget(entry, entry.place.charged ? entry.prefill : Tokens(0));
}

/// The entry is gone afterwards.
void QueueCore::forget(Entry& entry, Tokens used) {
  const RequestId request = entry.submit.request;
  if (entry.state == State::running) {
    drop_membership(running_on_, entry.worker, request);
    --running_;
  }
  order_.settle(entry.place, used);
  drop_membership(held_by_, entry.submit.tokens_to, request);
  set_alarm(entry, kNever);
  entries_.erase(request);
}

void QueueCore::on(const ActorFound& found, Instant now, Outbox& out) {
  present_.insert(found.actor);
  if (hears_status(found.actor)) status_hearers_.insert(found.actor);
  announce_held_back(now, out);
  if (found.actor != options_.scheduler) return;
  // A scheduler that has just started knows nothing; what runs stays with its workers.
  for (const auto& [request, entry] : entries_)
    if (entry.state == State::waiting) announce(entry, now, out);
}

void QueueCore::on(const ActorLost& lost, Instant now, Outbox& out) {
  present_.erase(lost.actor);
  status_hearers_.erase(lost.actor);
  const auto requests_of = [&](const Members& members) {
    const auto found = members.find(lost.actor);
    return found == members.end() ? std::set<RequestId>{} : found->second;
  };
  const std::string why = lost.actor.text() + " was lost: " + lost.why;
  for (const RequestId request : requests_of(running_on_)) interrupt(entries_.at(request), why, now, out);
  for (const RequestId request : requests_of(held_by_)) cancel(entries_.at(request), now, out);
  conclude(now, out);
}

void QueueCore::wake(Timer timer, Instant now, Outbox& out) {
  if (timer == kStatus) {
    send_status(out);
    announce_held_back(now, out);
    out.set_timer(kStatus, now + options_.status_every);
    return;
  }
  armed_ = kNever;
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    Entry& entry = entries_.at(alarms_.begin()->second);
    if (entry.state == State::interrupted) {
      forget(entry, entry.prefill);
    } else {
      const bool acted = overdue(entry, now, out);
      SANGAM_ASSERT(acted, entry.submit.request);
    }
  }
  conclude(now, out);
}

QueueCore::Entry* QueueCore::waiting(RequestId request) {
  const auto found = entries_.find(request);
  return found == entries_.end() || found->second.state != State::waiting ? nullptr : &found->second;
}

void QueueCore::announce(const Entry& entry, Instant now, Outbox& out) const {
  Enqueued message;
  message.request = entry.submit.request;
  message.attempt = entry.submit.attempt;
  message.model = options_.model;
  message.service_class = entry.service_class;
  message.rank = entry.place.rank();
  if (entry.due_at != kNever) message.ttft_in = std::chrono::floor<Millis>(entry.due_at - now);
  message.requeue_when_late = entry.submit.requeue_when_late;
  message.prefill_tokens = entry.prefill;
  message.output_max = std::max(entry.cost - entry.prefill, Tokens(0));
  out.send(options_.scheduler, std::move(message));
}

void QueueCore::withdraw(RequestId request, Outbox& out) const {
  out.send(options_.scheduler, Withdrawn{request, options_.model});
}

void QueueCore::set_alarm(Entry& entry, Instant at) {
  if (entry.alarm_at != kNever) alarms_.erase({entry.alarm_at, entry.submit.request});
  entry.alarm_at = at;
  if (at != kNever) alarms_.insert({at, entry.submit.request});
}

void QueueCore::drop_membership(Members& members, const ActorName& actor, RequestId request) {
  const auto found = members.find(actor);
  SANGAM_ASSERT(found != members.end() && found->second.contains(request), actor, request);
  found->second.erase(request);
  if (found->second.empty()) members.erase(found);
}

void QueueCore::conclude(Instant now, Outbox& out) {
  if (const auto promoted = order_.promote()) {
    Entry& entry = entries_.at(*promoted);
    entry.place.promoted = true;
    announce(entry, now, out);
  }
  const Instant next = alarms_.empty() ? kNever : alarms_.begin()->first;
  if (next < armed_) out.set_timer(kDue, armed_ = next);
  const bool fell =
      (admission_.requests() == 0 && waiting_before_ > 0) || (running_ == 0 && running_before_ > 0);
  if (fell) send_status(out);
  waiting_before_ = admission_.requests();
  running_before_ = running_;
}

void QueueCore::send_status(Outbox& out) {
  told_.waiting = admission_.requests();
  told_.running = running_;
  told_.waiting_tokens = admission_.tokens();
  ++told_.sequence;
  for (const ActorName& actor : status_hearers_) out.send(actor, told_);
}

}  // namespace sangam
