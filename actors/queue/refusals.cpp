// When a request is not to be served: what the queue says then, and whether it is lowered instead.
#include "actors/queue/queue_core.hpp"
#include "actors/queue/spans.hpp"

namespace sangam {

std::optional<Refusal> QueueCore::closed(Instant now) const {
  if (now >= closed_until_) return std::nullopt;
  return Refusal{make_error(ErrorCode::unavailable, closed_why_),
                 std::chrono::ceil<Millis>(closed_until_ - now)};
}

/// What waits learns the cause; what comes before the model may be tried again, that it is to wait.
void QueueCore::on(const Unservable& verdict, Instant now, Outbox& out) {
  closed_until_ = now + sane(verdict.retry_after);
  closed_why_ = "the model cannot be loaded at present: " + verdict.why;
  std::vector<RequestId> waiting;
  for (const auto& [request, entry] : entries_) {
    if (entry.state == State::waiting) waiting.push_back(request);
  }
  for (const RequestId request : waiting) {
    ++told_.refused;
    refuse(entries_.at(request), {make_error(verdict.code, closed_why_), Millis(0)}, now, out);
  }
  conclude(now, out);
}

void QueueCore::on(const CannotBeOnTime& verdict, Instant now, Outbox& out) {
  Entry* entry = waiting(verdict.request);
  if (!entry || entry->submit.attempt != verdict.attempt || entry->due_at == kNever) return;
  // A client that comes back with the same patience needs to come that much before the earliest token.
  const Millis earliest = sane(verdict.earliest_in);
  const Millis after = std::max(earliest - std::max(sane(entry->submit.ttft_in), Millis(0)), Millis(1));
  const Millis left = std::max(std::chrono::floor<Millis>(entry->due_at - now), Millis(0));
  const std::string why = "first token possible in " + std::to_string(earliest.count()) + " ms, due in " +
                          std::to_string(left.count()) + " ms, " + std::to_string(entry->submit.ttft_in.count()) +
                          " ms after submission; retry later or allow more time";
  too_late(*entry, {make_error(ErrorCode::cannot_be_on_time, why), earliest > Millis(0) ? after : Millis(0)},
           now, out);
  conclude(now, out);
}

bool QueueCore::overdue(Entry& entry, Instant now, Outbox& out) {
  if (now >= entry.expires_at) {
    ++told_.expired;
    refuse(entry,
           {make_error(ErrorCode::expired, "not begun within " +
                                               std::to_string(entry.submit.expires_in.count()) +
                                               " ms; retry later or allow more time"),
            admission_.time_to_drain(now)},
           now, out);
    return true;
  }
  if (now < entry.due_at) return false;
  too_late(entry,
           {make_error(ErrorCode::cannot_be_on_time, "still waiting when the first token was due, after " +
                                                         std::to_string(entry.submit.ttft_in.count()) +
                                                         " ms; retry later or allow more time"),
            admission_.time_to_drain(now)},
           now, out);
  return true;
}

void QueueCore::too_late(Entry& entry, Refusal refusal, Instant now, Outbox& out) {
  if (!entry.submit.requeue_when_late) {
    ++told_.refused;
    return refuse(entry, std::move(refusal), now, out);
  }
  out.log(LogLevel::info, "queue.lowered",
          {{"model", options_.model.text()}, {"why", refusal.error.context}});
  entry.service_class = ServiceClass::best_effort;
  entry.due_at = kNever;
  set_alarm(entry, entry.expires_at);
  entry.place.lane = Lane::best_effort;
  order_.enter(entry.submit.request, entry.place);
  withdraw(entry.submit.request, out);
  announce(entry, now, out);
}

void QueueCore::refuse(Entry& entry, Refusal refusal, Instant now, Outbox& out) {
  const Submit& submit = entry.submit;
  std::string why = queue_of(options_.model).text() + ": " + refusal.error.context;
  out.log(LogLevel::info, "queue.refused",
          {{"model", options_.model.text()}, {"tenant", submit.tenant.text()}, {"why", why}});
  out.send(submit.tokens_to,
           Refused{submit.request, submit.attempt, refusal.error.code, std::move(why), refusal.retry_after});
  cancel(entry, now, out);
}

}  // namespace sangam
