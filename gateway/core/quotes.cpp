// What the gateway does with predictions of first tokens: asks for them, passes them on, and measures how they hold.
#include <algorithm>

#include "gateway/core/gateway_core.hpp"

namespace sangam {
namespace {

/// Times from the wire, kept where sums with an instant cannot overflow.
Millis sane(Millis time) {
  return std::clamp(time, Millis(0), Millis(std::chrono::hours(24 * 365)));
}

}  // namespace

RequestId GatewayCore::ask(const ClientCall& call, Instant now, Outbox& out) {
  const RequestId question{next_request_++};
  if (auto error = absence(call.model)) {
    quotes_.refuse(question, std::move(*error));
    return question;
  }
  AskQuote ask;
  ask.request = question;
  ask.model = call.model;
  ask.service_class = call.service_class;
  ask.prefill_tokens = call.longest_prompt();
  ask.output_max = call.sampling.max_tokens;
  ask.ttft_in = call.ttft;
  quotes_.open(std::move(ask), now, out);
  return question;
}

void GatewayCore::on(const Quoted& quoted, Instant now, Outbox&) {
  if (quoted.attempt == 0) return quotes_.answered(quoted);
  const auto at = find(quoted.request, quoted.attempt);
  if (!at || at->choice->begun || at->choice->quote || quoted.latest <= Millis(0)) return;
  const Millis latest = sane(quoted.latest);
  at->choice->quote = Window{now + std::min(sane(quoted.earliest), latest), now + latest};
  LiveCall& live = *at->live;
  Window widest = *at->choice->quote;
  for (const Choice& choice : live.choices) {
    if (!choice.quote) return;
    widest.earliest = std::min(widest.earliest, choice.quote->earliest);
    widest.latest = std::max(widest.latest, choice.quote->latest);
  }
  tell(live, CallQuoted{std::chrono::floor<Millis>(widest.earliest - live.opened),
                        std::chrono::ceil<Millis>(widest.latest - live.opened)});
}

void GatewayCore::measure_quote(const LiveCall& live, const Choice& choice) {
  if (!choice.quote) return;
  const auto& [earliest, latest] = *choice.quote;
  QuoteOutcome outcome = QuoteOutcome::inside;
  if (choice.first_at < earliest) outcome = QuoteOutcome::early;
  if (choice.first_at > latest) outcome = QuoteOutcome::late;
  measurements_.push_back(QuoteMeasured{live.call.model, outcome, latest - earliest});
}

}  // namespace sangam
