// What the gateway does when actors come and go, and when time runs out.
#include <algorithm>

#include "gateway/core/gateway_core.hpp"

namespace sangam {
namespace {

constexpr Timer kAlarm{0};  // One timer for all calls, at the earliest alarm.

ApiError late(ErrorCode code, std::string message) {
  return ApiError{code, std::move(message), "", Millis{0}};
}

std::string millis(Millis time) {
  return std::to_string(time.count()) + " ms";
}

}  // namespace

/// The open requests that `chosen` picks; a list, because acting on one may end its whole call.
template <class Predicate>
std::vector<std::pair<RequestId, Attempt>> GatewayCore::open_requests(Predicate chosen) const {
  std::vector<std::pair<RequestId, Attempt>> picked;
  for (const auto& [id, live] : calls_) {
    for (const Choice& choice : live.choices) {
      if (!choice.ended && chosen(live, choice)) picked.emplace_back(choice.request, choice.attempt);
    }
  }
  return picked;
}

void GatewayCore::on(const ActorFound& found, Instant now, Outbox& out) {
  fleet_.found(found.actor);
  commands_.found(found.actor);
  quotes_.found(found.actor);
  served_.found(found.actor);
  const auto orphans = open_requests([&](const LiveCall& live, const Choice&) {
    return live.queue_lost.has_value() && queue_of(live.call.model) == found.actor;
  });
  for (const auto& [request, attempt] : orphans) {
    const auto at = find(request, attempt);
    if (at) submit_again(*at->live, *at->choice, "its queue was lost", now, out);
  }
  for (auto& [id, live] : calls_) {
    if (queue_of(live.call.model) != found.actor || !live.queue_lost) continue;
    live.queue_lost.reset();
    set_alarm(live, out);
  }
}

void GatewayCore::on(const ActorLost& lost, Instant now, Outbox& out) {
  fleet_.lost(lost.actor);
  commands_.lost(lost);
  quotes_.lost(lost);
  served_.lost(lost.actor);
  for (auto& [id, live] : calls_) {
    if (queue_of(live.call.model) != lost.actor || live.queue_lost) continue;
    live.queue_lost = now;
    set_alarm(live, out);
  }
  const auto orphans =
      open_requests([&](const LiveCall&, const Choice& choice) { return choice.worker == lost.actor; });
  for (const auto& [request, attempt] : orphans) {
    const auto at = find(request, attempt);
    if (at) submit_again(*at->live, *at->choice, lost.actor.text() + " was lost: " + lost.why, now, out);
  }
}

void GatewayCore::on(const InstanceGone& gone, Instant, Outbox& out) {
  fleet_.gone(gone);
  out.log(LogLevel::warning, "gateway.instance_gone",
          {{"model", gone.model.text()}, {"worker", gone.worker.text()}, {"why", gone.why}});
}

std::optional<ApiError> GatewayCore::overdue(const LiveCall& live, Instant now) const {
  const std::string queue = queue_of(live.call.model).text();
  if (now >= live.ends_by) {
    return late(ErrorCode::expired,
                "The call was not done within " + millis(times_.call_max) + " (call_max).");
  }
  if (!live.admitted && now >= live.opened + times_.accept_within) {
    return late(ErrorCode::unavailable, queue + " did not answer within " + millis(times_.accept_within) +
                                            " (accept_within); try again.");
  }
  if (live.queue_lost && now >= *live.queue_lost + times_.queue_back_within) {
    return late(ErrorCode::unavailable, queue + " was lost and did not return within " +
                                            millis(times_.queue_back_within) +
                                            " (queue_back_within); try again.");
  }
  return std::nullopt;
}

Instant GatewayCore::next_alarm(const LiveCall& live) const {
  Instant next = live.ends_by;
  if (!live.admitted) next = std::min(next, live.opened + times_.accept_within);
  if (live.queue_lost) next = std::min(next, *live.queue_lost + times_.queue_back_within);
  return next;
}

void GatewayCore::set_alarm(LiveCall& live, Outbox& out) {
  if (live.alarm) alarms_.erase({*live.alarm, live.id});
  live.alarm = next_alarm(live);
  alarms_.emplace(*live.alarm, live.id);
  if (timer_at_ && *timer_at_ <= alarms_.begin()->first) return;
  timer_at_ = alarms_.begin()->first;
  out.set_timer(kAlarm, *timer_at_);
}

void GatewayCore::wake(Timer timer, Instant now, Outbox& out) {
  if (timer == QuoteDesk::kTimer) return quotes_.wake(now, out);
  if (timer == ServedDesk::kTimer) return served_.wake(out);
  timer_at_.reset();
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    LiveCall& live = calls_.at(alarms_.begin()->second);
    if (const auto error = overdue(live, now)) {
      fail(live, *error, now, out);
    } else {
      set_alarm(live, out);
    }
  }
  if (alarms_.empty() || timer_at_) return;
  timer_at_ = alarms_.begin()->first;
  out.set_timer(kAlarm, *timer_at_);
}

}  // namespace sangam
