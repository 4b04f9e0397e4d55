// How a run changes the worker: one computes the prompt and says the first token, another goes on.
//
// From the question until the answer nobody but the taker knows whose the run is, so the giver keeps the pages as
// they are and ends nothing. The taker alone tells of the change, before anything else it says of the run. The queue
// passes that on to the giver, which answers for the run until then: should the taker die, its word may be lost.
#include "actors/worker/worker_core.hpp"

#include <utility>

namespace sangam {
namespace {

const ActorName kScheduler("scheduler");

std::string number(RequestId request) {
  return std::to_string(std::uint64_t(request));
}

}  // namespace

bool WorkerCore::can_hand_over(const Run& run) const {
  return !run.decode_on.empty() && !options_.holder.empty();
}

void WorkerCore::offer(RequestId request, Outbox& out) {
  HandOver& letter = live_.at(request).outgoing->letter;
  letter.run.generated.insert(letter.run.generated.end(), letter.said.tokens.begin(), letter.said.tokens.end());
  auto place = runner_->kv_place(letter.run);
  if (!place) return go_on_here(request, place.error().context, out);
  letter.kv = std::move(*place);
  Outgoing& outgoing = *live_.at(request).outgoing;
  if (const auto first = std::exchange(outgoing.reserving, std::nullopt)) {
    std::erase(outgoing.left, *first);
    outgoing.left.push_front(*first);
  }
  ask_next(request, "no worker that decodes is there", out);
}

/// `why` nobody has taken it so far.
void WorkerCore::ask_next(RequestId request, const std::string& why, Outbox& out) {
  Live& live = live_.at(request);
  Outgoing& outgoing = *live.outgoing;
  outgoing.asked.reset();
  if (outgoing.given_up) {
    const auto last = std::exchange(outgoing.last_word, std::nullopt);
    if (last) out.send(live.tokens_to, *last);
    return end(request, last ? last->finish : FinishReason::cancelled, out);
  }
  while (!outgoing.left.empty() && !outgoing.asked) {
    ActorName next = std::move(outgoing.left.front());
    outgoing.left.pop_front();
    if (present_.contains(next)) outgoing.asked = std::move(next);
  }
  if (!outgoing.asked) return go_on_here(request, why, out);
  out.send(*outgoing.asked, outgoing.letter);
}

/// The prefix cache gets what has been computed, so that it is not computed again.
void WorkerCore::go_on_here(RequestId request, const std::string& why, Outbox& out) {
  Live& live = live_.at(request);
  take_back(request, out);
  ++self_decodes_[live.model];
  const Run run = std::move(live.outgoing->letter.run);
  live.outgoing.reset();
  out.log(LogLevel::info, "worker.decodes_itself",
          {{"request", number(request)}, {"model", live.model.text()}, {"why", why}});
  runner_->let_go(request);
  const auto added = runner_->add(run);
  if (added) return;
  out.send(live.tokens_to, last_word(request, FinishReason::failed, added.error()));
  end(request, FinishReason::failed, out);
}

void WorkerCore::on(const HandOverEnded& ended, Instant, Outbox& out) {
  const auto found = live_.find(ended.request);
  if (found == live_.end() || found->second.attempt != ended.attempt) return;
  if (!found->second.in_doubt() || found->second.outgoing->asked != ended.worker) return;
  if (ended.code != ErrorCode::none) return ask_next(ended.request, ended.why, out);
  runner_->let_go(ended.request);
  found->second.outgoing->taken = true;
  if (found->second.outgoing->queue_lost) forget(ended.request, out);
  tell_status(true, out);
}

void WorkerCore::on(const RunMoved& moved, Instant, Outbox& out) {
  const auto found = live_.find(moved.request);
  if (found == live_.end() || found->second.attempt != moved.attempt) return;
  if (!found->second.in_doubt() || found->second.outgoing->asked != moved.to) return;
  runner_->let_go(moved.request);
  forget(moved.request, out);
}

/// The taker ends its runs itself.
void WorkerCore::queue_lost(const ActorName& queue, Outbox& out) {
  const auto asked =
      live_where([&](RequestId, const Live& live) { return live.in_doubt() && queue_of(live.model) == queue; });
  for (const RequestId request : asked) {
    Outgoing& outgoing = *live_.at(request).outgoing;
    outgoing.queue_lost = true;
    if (outgoing.taken) forget(request, out);
  }
}

/// It may have said tokens already, and its queue may have heard that the run is its: the gateway has the run done
/// again by whoever is there.
void WorkerCore::taker_lost(const ActorName& worker, Outbox& out) {
  const auto asked = live_where(
      [&](RequestId, const Live& live) { return live.in_doubt() && live.outgoing->asked == worker; });
  const Error why = make_error(ErrorCode::unavailable, worker.text() + " was lost, which was to go on with it");
  for (const RequestId request : asked) {
    Outgoing& outgoing = *live_.at(request).outgoing;
    if (!std::exchange(outgoing.given_up, true)) outgoing.last_word = last_word(request, FinishReason::failed, why);
    ask_next(request, why.context, out);
  }
}

void WorkerCore::on(const HandOver& offered, Instant, Outbox& out) {
  HandOverEnded answer{.request = offered.run.request, .attempt = offered.run.attempt, .worker = options_.name};
  const bool in_advance = incoming_.erase(answer.request) > 0;  // It is this run's from now on, or nobody's.
  if (const auto taken = take_over(offered, out); !taken) {
    answer.code = taken.error().code;
    answer.why = taken.error().context;
    runner_->drop_kv(answer.request);
    out.log(LogLevel::info, "worker.hand_over_refused",
            {{"request", number(answer.request)}, {"from", offered.from.text()}, {"why", answer.why}});
  } else {
    out.log(LogLevel::debug, "worker.took_over",
            {{"request", number(answer.request)},
             {"model", offered.run.model.text()},
             {"from", offered.from.text()},
             {"in_advance", in_advance ? "yes" : "no"}});
  }
  out.send(offered.from, std::move(answer));
}

Result<void> WorkerCore::take_over(const HandOver& offered, Outbox& out) {
  const Run& run = offered.run;
  for (const ActorName& needed : {queue_of(run.model), run.tokens_to}) {
    if (present_.contains(needed)) continue;
    return make_error(ErrorCode::unavailable, options_.name.text() + ": " + needed.text() + " is not there");
  }
  if (!is_news(run.request, run.attempt)) {
    return make_error(ErrorCode::unavailable, options_.name.text() + ": attempt " + std::to_string(run.attempt) +
                                                  " of request " + number(run.request) + " is over");
  }
  end_older(run, out);
  if (auto room = room_for(run.model); !room) return room;
  if (auto taken = runner_->take_over(offered); !taken) return taken;
  Live live{.attempt = run.attempt, .model = run.model, .tokens_to = run.tokens_to};
  live.length = length_of(run);
  live.produced = Tokens(std::int64_t(offered.said.tokens.size()));
  live.next_token = run.generated.size();
  live.prefill_told = true;
  enter(run.request, std::move(live));
  keeper_.run_began(run.model, out);
  const RunMoved moved{run.request, run.attempt, run.model, offered.from, options_.name};
  out.send(queue_of(run.model), moved);
  out.send(kScheduler, moved);
  out.send(run.tokens_to, offered.said);
  return {};
}

}  // namespace sangam
