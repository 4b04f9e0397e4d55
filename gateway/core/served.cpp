// What a choice was like for its client, as the oracle learns from it.
#include "gateway/core/gateway_core.hpp"

namespace sangam {

/// Clients state when the first token is due and nothing of the later ones, so no other token can be late; of a
/// choice that failed, all are.
void GatewayCore::note_served(const LiveCall& live, const Choice& choice, ErrorCode code, Instant now, Outbox& out) {
  ServedRequest served;
  served.model = live.call.model;
  served.input = prompt_of(live, choice);
  served.output = Tokens(std::int64_t(choice.generated.size()));
  if (choice.begun) served.ttft = choice.first_at - live.opened;
  if (served.output > Tokens(1)) served.tpot = (choice.last_at - choice.first_at) / (served.output.count() - 1);
  if (live.call.service_class == ServiceClass::deadline) served.ttft_slo = live.call.ttft;
  const bool first_late = served.ttft_slo > Millis(0) && served.ttft > served.ttft_slo;
  served.late = code == ErrorCode::none ? Tokens(first_late ? 1 : 0) : served.output;
  served.code = code;
  served_.ended(std::move(served), now, out);
}

}  // namespace sangam
