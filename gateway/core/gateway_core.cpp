// The life of a call in the mesh: submission, acceptance, tokens, loss, end.
#include "gateway/core/gateway_core.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

/// Tokens that a call may cost at most; what it does not use is given back at its end.
Tokens cost_of(const ClientCall& call) {
  Tokens cost = call.sampling.max_tokens * std::int64_t(call.choices());
  for (const auto& prompt : call.prompts) cost += Tokens(std::int64_t(prompt.size()));
  return cost;
}

ApiError lost(std::string message) {
  return ApiError{ErrorCode::unavailable, std::move(message), "", Millis{0}};
}

/// Place, start and count: gateways count their starts each in a store of its own.
std::uint64_t first_request(const GatewayOptions& options) {
  constexpr int kCountBits = 32;
  constexpr int kIncarnationBits = 24;
  const auto incarnation = std::uint64_t(options.incarnation);
  SANGAM_ASSERT(options.place < kGatewaysMax && incarnation < std::uint64_t{1} << kIncarnationBits, options.place, incarnation);
  return (std::uint64_t(options.place) << (kCountBits + kIncarnationBits)) + (incarnation << kCountBits) + 1;
}

}  // namespace

GatewayCore::GatewayCore(const GatewayOptions& options)
    : name_(options.name),
      limits_(options.limits),
      times_(options.times),
      next_request_(first_request(options)),
      rates_(options.keys),
      commands_(options.name, options.incarnation),
      quotes_(options.name, options.times.quote_within),
      served_(options.name) {}

CallId GatewayCore::open(ClientCall call, Instant now, Outbox& out) {
  const CallId id{next_call_++};
  if (auto error = objection(call, now)) {
    events_.push_back({id, CallFailed{std::move(*error)}});
    return id;
  }
  LiveCall& live = calls_[id];
  live.id = id;
  live.call = std::move(call);
  live.opened = now;
  live.ends_by = now + times_.call_max;
  for (std::size_t i = 0; i < live.call.choices(); ++i) {
    live.choices.push_back({.request = RequestId{next_request_++}, .text = ChoiceText(live.call)});
    requests_[live.choices.back().request] = {id, i};
  }
  for (Choice& choice : live.choices) submit(live, choice, now, out);
  set_alarm(live, out);
  return id;
}

std::optional<ApiError> GatewayCore::absence(const ModelId& model) const {
  if (fleet_.present(queue_of(model))) return std::nullopt;
  return lost("The model '" + model.text() + "' is known, but its queue is away at the moment; try again.");
}

/// Why a call cannot even be submitted.
std::optional<ApiError> GatewayCore::objection(const ClientCall& call, Instant now) {
  if (auto error = absence(call.model)) return error;
  if (std::int64_t(calls_.size()) >= limits_.calls_max) {
    return ApiError{ErrorCode::exhausted,
                    "This gateway serves " + number(limits_.calls_max) +
                        " calls already, its limit (calls_max); try again.",
                    "", Millis{0}};
  }
  if (const auto wait = rates_.take(call.tenant, cost_of(call), now)) {
    return ApiError{ErrorCode::queue_full,
                    "The rate limit of tenant '" + call.tenant.text() + "' is reached (" +
                        number(cost_of(call).count()) + " tokens asked for); try again in " +
                        number(wait->count()) + " ms.",
                    "", *wait};
  }
  return std::nullopt;
}

void GatewayCore::submit(LiveCall& live, Choice& choice, Instant now, Outbox& out) {
  const ClientCall& call = live.call;
  const std::size_t index = std::size_t(&choice - live.choices.data());
  choice.attempt += 1;
  choice.worker = ActorName();
  Submit submit{.request = choice.request,
                .attempt = choice.attempt,
                .model = call.model,
                .tenant = call.tenant,
                .service_class = call.service_class,
                .requeue_when_late = call.requeue_when_late,
                .prompt = call.prompts[index / std::size_t(call.n)],
                .generated = choice.generated,
                .sampling = call.sampling,
                .tokens_to = name_};
  submit.sampling.seed += index % std::size_t(call.n);
  if (call.service_class == ServiceClass::deadline) {
    const auto due = choice.begun ? now + call.ttft : live.opened + call.ttft;
    submit.ttft_in = std::max(Millis{0}, std::chrono::floor<Millis>(due - now));
    // It was accepted once, so lateness that a loss has caused is no reason to drop it.
    submit.requeue_when_late |= choice.attempt > 1;
  }
  if (call.ttl > Millis{0} && !choice.started) {
    submit.expires_in = std::max(Millis{1}, std::chrono::floor<Millis>(live.opened + call.ttl - now));
  }
  out.send(queue_of(call.model), std::move(submit));
}

/// Ends the call instead, when the choice has been tried often enough or has no token left to generate.
void GatewayCore::submit_again(LiveCall& live, Choice& choice, const std::string& why, Instant now,
                               Outbox& out) {
  if (Tokens(std::int64_t(choice.generated.size())) >= live.call.sampling.max_tokens) {
    return end_choice({&live, &choice}, FinishReason::length, now, out);
  }
  if (choice.attempt >= limits_.attempts_max) {
    return fail(live,
                lost("The request was lost " + number(choice.attempt) + " times, the last time because " +
                     why + "; given up (attempts_max)."),
                now, out);
  }
  if (!fleet_.present(queue_of(live.call.model))) return;  // Its return submits again.
  submit(live, choice, now, out);
  out.log(LogLevel::warning, "gateway.submitted_again",
          {{"request", number(std::int64_t(choice.request))},
           {"attempt", number(choice.attempt)},
           {"tokens", number(std::int64_t(choice.generated.size()))},
           {"why", why}});
}

void GatewayCore::close(CallId call, Instant now, Outbox& out) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  cancel_open_choices(found->second, ErrorCode::cancelled, now, out);
  erase(found->second, now);
}

void GatewayCore::fail_all(const ApiError& error, Instant now, Outbox& out) {
  while (!calls_.empty()) fail(calls_.begin()->second, error, now, out);
}

void GatewayCore::accept(Place at, Instant now) {
  if (at.choice->accepted) return;
  at.choice->accepted = true;
  at.choice->accepted_at = now;
  LiveCall& live = *at.live;
  const bool all =
      std::all_of(live.choices.begin(), live.choices.end(), [](const Choice& c) { return c.accepted; });
  if (live.admitted || !all) return;
  live.admitted = true;
  tell(live, CallAdmitted{});
}

void GatewayCore::on(const Accepted& accepted, Instant now, Outbox& out) {
  const auto at = find(accepted.request, accepted.attempt);
  if (!at) return;
  accept(*at, now);
  set_alarm(*at->live, out);
}

void GatewayCore::on(const Refused& refused, Instant now, Outbox& out) {
  const auto at = find(refused.request, refused.attempt);
  if (at) fail(*at->live, ApiError{refused.code, refused.why, "", refused.retry_after}, now, out);
}

void GatewayCore::on(const Started& started, Instant now, Outbox&) {
  const auto at = find(started.request, started.attempt);
  if (!at) return;
  accept(*at, now);
  at->choice->worker = started.worker;
  if (!at->choice->started) at->choice->started_at = now;
  at->choice->started = true;
}

void GatewayCore::on(const Interrupted& interrupted, Instant now, Outbox& out) {
  const auto at = find(interrupted.request, interrupted.attempt);
  if (at) submit_again(*at->live, *at->choice, interrupted.why, now, out);
}

void GatewayCore::on(const TokensProduced& produced, Instant now, Outbox& out) {
  const auto at = find(produced.request, produced.attempt);
  if (!at) return;
  accept(*at, now);  // A worker's letter may overtake the queue's.
  if (produced.first > at->choice->generated.size()) {
    out.log(LogLevel::error, "gateway.gap",
            {{"request", number(std::int64_t(produced.request))},
             {"first", std::to_string(produced.first)},
             {"have", std::to_string(at->choice->generated.size())}});
    return submit_again(*at->live, *at->choice, "tokens were missing from the stream", now, out);
  }
  read_tokens(*at, produced, now, out);
}

void GatewayCore::read_tokens(Place at, const TokensProduced& produced, Instant now, Outbox& out) {
  auto& [live, choice] = at;
  const std::size_t known = choice->generated.size() - std::size_t(produced.first);
  TextDelta delta{.choice = std::size_t(choice - live->choices.data()), .text = {}, .pieces = {}};
  bool stopped = false;
  for (std::size_t i = known; i < produced.tokens.size() && !stopped; ++i) {
    stopped = take_token(at, produced, i, delta);
  }
  choice->cached = std::max(choice->cached, produced.cached);
  if (produced.tokens.size() > known) time_step(at, produced.tokens.size() - known, now);
  const bool done =
      stopped || produced.finish == FinishReason::stop || produced.finish == FinishReason::length;
  if (done) {
    auto rest = choice->text.finish();
    delta.text += rest.text;
    std::move(rest.pieces.begin(), rest.pieces.end(), std::back_inserter(delta.pieces));
    stopped |= rest.stopped;
  }
  if (!delta.text.empty() || !delta.pieces.empty()) tell(*live, std::move(delta));
  if (stopped && produced.finish == FinishReason::none) {
    out.send(queue_of(live->call.model), Cancel{choice->request});
  }
  if (done) return end_choice(at, stopped ? FinishReason::stop : produced.finish, now, out);
  worker_gave_up(at, produced, now, out);
}

/// True when a stop string is complete.
bool GatewayCore::take_token(Place at, const TokensProduced& produced, std::size_t index, TextDelta& delta) {
  at.choice->generated.push_back(produced.tokens[index]);
  const bool scored = at.live->call.sampling.logprobs >= 0 && index < produced.logprobs.size();
  auto released = at.choice->text.push(produced.tokens[index], scored ? &produced.logprobs[index] : nullptr);
  delta.text += released.text;
  std::move(released.pieces.begin(), released.pieces.end(), std::back_inserter(delta.pieces));
  return released.stopped;
}

void GatewayCore::worker_gave_up(Place at, const TokensProduced& produced, Instant now, Outbox& out) {
  if (produced.finish == FinishReason::none) return;
  // Nobody here has cancelled it: the worker had lost sight of the queue or of this gateway.
  if (produced.finish == FinishReason::cancelled) {
    return submit_again(*at.live, *at.choice, "the worker cancelled it", now, out);
  }
  if (produced.code == ErrorCode::unavailable)
    return submit_again(*at.live, *at.choice, produced.why, now, out);
  fail(*at.live, ApiError{produced.code, produced.why, "", Millis{0}}, now, out);
}

void GatewayCore::time_step(Place at, std::size_t fresh, Instant now) {
  Choice& choice = *at.choice;
  std::int64_t later = std::int64_t(fresh);
  if (!choice.begun) {
    choice.begun = true;
    choice.first_at = choice.last_at = now;
    measurements_.push_back(
        FirstTokenSeen{at.live->call.model, prompt_of(*at.live, choice), now - at.live->opened});
    measure_quote(*at.live, choice);
    later -= 1;
  }
  if (later > 0) measurements_.push_back(NextTokensSeen{at.live->call.model, later, now - choice.last_at});
  choice.last_at = now;
}

void GatewayCore::end_choice(Place at, FinishReason finish, Instant now, Outbox& out) {
  auto& [live, choice] = at;
  choice->ended = true;
  requests_.erase(choice->request);
  measure(*live, *choice, finish == FinishReason::length ? "length" : "stop", now);
  note_served(*live, *choice, ErrorCode::none, now, out);
  tell(*live, ChoiceEnded{std::size_t(choice - live->choices.data()), finish});
  live->ended += 1;
  if (live->ended < live->choices.size()) return;
  tell(*live, CallEnded{usage_of(*live)});
  erase(*live, now);
}

void GatewayCore::fail(LiveCall& live, ApiError error, Instant now, Outbox& out) {
  out.log(error.code == ErrorCode::internal ? LogLevel::error : LogLevel::info, "gateway.call_failed",
          {{"model", live.call.model.text()},
           {"request", number(std::int64_t(live.choices.front().request))},
           {"why", error.message}});
  cancel_open_choices(live, error.code, now, out);
  tell(live, CallFailed{std::move(error)});
  erase(live, now);
}

/// `why`: cancelled where the client has left.
void GatewayCore::cancel_open_choices(LiveCall& live, ErrorCode why, Instant now, Outbox& out) {
  for (const Choice& choice : live.choices) {
    if (choice.ended) continue;
    out.send(queue_of(live.call.model), Cancel{choice.request});
    measure(live, choice, why == ErrorCode::cancelled ? "abort" : "error", now);
    note_served(live, choice, why, now, out);
  }
}

void GatewayCore::erase(LiveCall& live, Instant now) {
  Tokens unused = cost_of(live.call);
  for (const Choice& choice : live.choices) {
    unused -= Tokens(std::int64_t(choice.generated.size()));
    requests_.erase(choice.request);
  }
  for (const auto& prompt : live.call.prompts) unused -= Tokens(std::int64_t(prompt.size()));
  rates_.give_back(live.call.tenant, unused, now);
  if (live.alarm) alarms_.erase({*live.alarm, live.id});
  calls_.erase(live.id);
}

void GatewayCore::measure(const LiveCall& live, const Choice& choice, std::string finish, Instant now) {
  ChoiceMeasured measured{.model = live.call.model, .finish = std::move(finish), .n = live.call.n};
  measured.prompt = prompt_of(live, choice);
  measured.generated = Tokens(std::int64_t(choice.generated.size()));
  measured.max_tokens = live.call.sampling.max_tokens;
  measured.whole = now - live.opened;
  if (choice.started) measured.queued = choice.started_at - live.opened;
  if (choice.begun) {
    measured.prefill = choice.first_at - (choice.started ? choice.started_at : live.opened);
    measured.decode = choice.last_at - choice.first_at;
  }
  measured.attempts = choice.attempt;
  measurements_.push_back(std::move(measured));
}

Tokens GatewayCore::prompt_of(const LiveCall& live, const Choice& choice) {
  const std::size_t index = std::size_t(&choice - live.choices.data());
  return Tokens(std::int64_t(live.call.prompts[index / std::size_t(live.call.n)].size()));
}

TokenUsage GatewayCore::usage_of(const LiveCall& live) const {
  TokenUsage usage;
  for (std::size_t p = 0; p < live.call.prompts.size(); ++p) {
    const Tokens size(std::int64_t(live.call.prompts[p].size()));
    usage.prompt += size;
    usage.cached += std::min(size, live.choices[p * std::size_t(live.call.n)].cached);
  }
  for (const Choice& choice : live.choices) usage.completion += Tokens(std::int64_t(choice.generated.size()));
  return usage;
}

TraceContext GatewayCore::trace_of(RequestId request) const {
  const auto found = requests_.find(request);
  return found == requests_.end() ? TraceContext{} : calls_.at(found->second.first).call.trace;
}

std::optional<GatewayCore::Place> GatewayCore::find(RequestId request, Attempt attempt) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return std::nullopt;
  LiveCall& live = calls_.at(found->second.first);
  Choice& choice = live.choices[found->second.second];
  if (choice.attempt != attempt) return std::nullopt;
  return Place{&live, &choice};
}

}  // namespace sangam
