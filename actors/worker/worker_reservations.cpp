// Pages that are set aside on one worker for a prompt while another computes it, so that little is left to copy in the
// end. All of it may be lost at any moment: a hand-over does without.
#include <utility>

#include "actors/worker/worker_core.hpp"

namespace sangam {
namespace {

/// So often is looked for what has become final, and
constexpr Millis kPullEvery{2};
/// for so long without result. A prompt that is so slow is copied at the end.
constexpr Seconds kSetAsideFor{10};

std::string number(RequestId request) {
  return std::to_string(std::uint64_t(request));
}

}  // namespace

/// A prompt is about to be computed.
void WorkerCore::reserve(ReserveKv wish, Outbox& out) {
  const RequestId request = wish.request;
  const auto found = live_.find(request);
  if (found == live_.end() || !found->second.outgoing || found->second.in_doubt()) return;
  Outgoing& outgoing = *found->second.outgoing;
  wish.attempt = found->second.attempt;
  wish.model = found->second.model;
  wish.from = options_.name;
  wish.incarnation = options_.incarnation;
  outgoing.wish = std::move(wish);
  outgoing.unwished = outgoing.left;
  ask_to_reserve(request, out);
}

/// The next one that is there.
void WorkerCore::ask_to_reserve(RequestId request, Outbox& out) {
  Outgoing& outgoing = *live_.at(request).outgoing;
  outgoing.reserving.reset();
  while (!outgoing.unwished.empty() && !outgoing.reserving) {
    ActorName next = std::move(outgoing.unwished.front());
    outgoing.unwished.pop_front();
    if (present_.contains(next)) outgoing.reserving = std::move(next);
  }
  if (outgoing.reserving) out.send(*outgoing.reserving, outgoing.wish);
}

void WorkerCore::on(const KvReserved& reserved, Instant, Outbox& out) {
  const auto found = live_.find(reserved.request);
  if (found == live_.end() || found->second.attempt != reserved.attempt || !found->second.outgoing) return;
  if (found->second.outgoing->reserving != reserved.worker || reserved.code == ErrorCode::none) return;
  ask_to_reserve(reserved.request, out);
}

/// Nothing will come of it. Who was asked may not have answered yet: it hears one after the other.
void WorkerCore::take_back(RequestId request, Outbox& out) {
  Live& live = live_.at(request);
  if (!live.outgoing) return;
  const auto asked = std::exchange(live.outgoing->reserving, std::nullopt);
  if (!asked) return;
  ReserveKv nothing = live.outgoing->wish;
  nothing.tokens = Tokens{0};
  nothing.kv = {};
  out.send(*asked, std::move(nothing));
}

void WorkerCore::reserver_lost(const ActorName& worker, Outbox& out) {
  const auto asked = live_where(
      [&](RequestId, const Live& live) { return live.outgoing && live.outgoing->reserving == worker; });
  for (const RequestId request : asked) ask_to_reserve(request, out);
}

void WorkerCore::on(const ReserveKv& wish, Instant now, Outbox& out) {
  if (wish.tokens == Tokens{0}) {
    const auto known = incoming_.find(wish.request);
    const bool same = known != incoming_.end() && known->second.attempt == wish.attempt &&
                      known->second.from == wish.from;
    if (same) drop_incoming(wish.request);
    return;
  }
  KvReserved answer{.request = wish.request, .attempt = wish.attempt, .worker = options_.name};
  if (const auto reserved = set_aside(wish, now); !reserved) {
    answer.code = reserved.error().code;
    answer.why = reserved.error().context;
    out.log(LogLevel::debug, "worker.reservation_refused",
            {{"request", number(wish.request)}, {"from", wish.from.text()}, {"why", answer.why}});
  } else if (incoming_.size() == 1) {
    out.set_timer(kPull, now + kPullEvery);
  }
  out.send(wish.from, std::move(answer));
}

Result<void> WorkerCore::set_aside(const ReserveKv& wish, Instant now) {
  if (!is_news(wish.request, wish.attempt)) {
    return make_error(ErrorCode::unavailable, options_.name.text() + ": attempt " + std::to_string(wish.attempt) +
                                                  " of request " + number(wish.request) + " is over");
  }
  drop_incoming(wish.request);
  if (auto room = room_for(wish.model); !room) return room;
  if (auto reserved = runner_->reserve_kv(wish); !reserved) return reserved;
  incoming_[wish.request] = {wish.attempt, wish.model, wish.from, now + kSetAsideFor,
                             Pages(std::int64_t(wish.kv.pages.size()))};
  return {};
}

void WorkerCore::pull(Instant now, Outbox& out) {
  const KvPulled pulled = runner_->pull_kv();
  for (const RequestId request : pulled.advanced) {
    if (const auto known = incoming_.find(request); known != incoming_.end())
      known->second.expires = now + kSetAsideFor;
  }
  for (const auto& [request, incoming] : incoming_) {
    if (incoming.expires > now) continue;
    out.log(LogLevel::info, "worker.reservation_expired",
            {{"request", number(request)}, {"model", incoming.model.text()}, {"from", incoming.from.text()}});
  }
  drop_incoming_where([&](const Incoming& incoming) { return incoming.expires <= now; });
  if (!incoming_.empty()) out.set_timer(kPull, pulled.more ? now : now + kPullEvery);
}

void WorkerCore::drop_incoming(RequestId request) {
  if (incoming_.erase(request) > 0) runner_->drop_kv(request);
}

void WorkerCore::drop_incoming_where(const std::function<bool(const Incoming&)>& which) {
  std::erase_if(incoming_, [&](const auto& entry) {
    if (!which(entry.second)) return false;
    runner_->drop_kv(entry.first);
    return true;
  });
}

}  // namespace sangam
