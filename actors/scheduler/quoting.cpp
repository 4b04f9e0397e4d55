// When the first token is to be expected: told to the queue of what begins to wait, and to whoever asks.
#include <limits>

#include "actors/scheduler/scheduler_core.hpp"

namespace sangam {
namespace {

constexpr std::string_view kQueuePrefix = "queue/";

/// A question has no rank yet: it is taken to come last of its class.
std::uint64_t last_rank(ServiceClass service_class) {
  constexpr std::uint64_t kBestEffort = std::uint64_t{1} << 63;  // Normal requests rank below it.
  return service_class == ServiceClass::normal ? kBestEffort - 1 : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

void SchedulerCore::on(const ActorFound& found, Instant, Outbox&) {
  if (found.actor.text().starts_with(kQueuePrefix)) {
    index_of(ModelId(found.actor.text().substr(kQueuePrefix.size())));
  }
}

void SchedulerCore::on(const AskQuote& ask, Instant now, Outbox& out) {
  Quoted quoted;
  quoted.request = ask.request;
  const auto model = model_indices_.find(ask.model);
  if (model == model_indices_.end()) {
    quoted.code = ErrorCode::not_found;
    return out.send(ask.answer_to, quoted);
  }
  PlaceInLine place{.prefill = {}, .rank = last_rank(ask.service_class)};
  place.prefill.tokens = std::max(ask.prefill_tokens, Tokens(0));
  place.prefill.model = model->second;
  if (ask.service_class == ServiceClass::deadline) place.prefill.deadline = deadline_in(ask.ttft_in, now);
  predict(place, first_token_in(place, fleet_, backlog_, now), now, quoted);
  out.send(ask.answer_to, quoted);
}

void SchedulerCore::predict(const PlaceInLine& place, std::optional<Micros> predicted, Instant now,
                            Quoted& quoted) const {
  if (const auto interval = quotes_.interval(place.prefill.model, predicted)) {
    quoted.earliest = std::chrono::floor<Millis>(interval->earliest);
    quoted.latest = std::max(std::chrono::ceil<Millis>(interval->latest), Millis(1));
  }
  if (!predicted || !place.prefill.has_deadline()) return;
  const Instant end = fleet_.earliest_end(place.prefill, now);
  if (end <= place.prefill.deadline) return;
  // With the same patience it has to come that much later, as the queue tells those that are refused.
  quoted.code = ErrorCode::cannot_be_on_time;
  quoted.feasible_in = std::max(std::chrono::ceil<Millis>(end - place.prefill.deadline), Millis(1));
}

void SchedulerCore::quote(const WaitingJob& job, Instant now, Outbox& out) {
  if (job.attempt != 1) return;
  const PlaceInLine place{.prefill = job.prefill, .rank = job.rank};
  const auto predicted = first_token_in(place, fleet_, backlog_, now);
  Quoted quoted;
  quoted.request = job.request;
  quoted.attempt = job.attempt;
  predict(place, predicted, now, quoted);
  if (quoted.code != ErrorCode::none) return;
  const bool is_first = quotes_.open(job.request, job.prefill.model, predicted, now);
  if (is_first && quoted.latest > Millis(0)) out.send(models_[job.prefill.model].queue, quoted);
}

}  // namespace sangam
