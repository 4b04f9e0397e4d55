// The limits, and the sentence that tells a refused client which one it met and when there is room again.
#include "actors/queue/admission.hpp"

#include <algorithm>
#include <string>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

/// "1025/1024 requests": what would be waiting and the limit.
std::string ratio(std::int64_t wanted, std::int64_t limit, const char* unit) {
  return std::to_string(wanted) + "/" + std::to_string(limit) + " " + unit;
}

}  // namespace

Admission::Admission(const QueueOptions& options) : options_(options) {}

void Admission::Load::change(std::int64_t request_delta, Tokens token_delta, Instant now) {
  drain.advance(now, requests > 0);
  requests += request_delta;
  tokens += token_delta;
  SANGAM_ASSERT(requests >= 0 && tokens.count() >= 0, requests, tokens);
}

void Admission::Load::completed(Tokens cost, Instant now) {
  drain.advance(now, requests > 0);
  if (requests > 0) drain.drained(cost);
}

std::optional<Refusal> Admission::over(const Load& load, const Limits& limits, Tokens cost,
                                       Instant now) const {
  const std::int64_t requests = load.requests + 1;
  const Tokens tokens = load.tokens + cost;
  Tokens must_leave{0};
  if (requests > limits.requests_max && load.requests > 0)
    must_leave = Tokens(load.tokens.count() / load.requests);
  if (tokens > limits.tokens_max) must_leave = std::max(must_leave, tokens - limits.tokens_max);
  if (requests <= limits.requests_max && tokens <= limits.tokens_max) return std::nullopt;
  return Refusal{make_error(ErrorCode::queue_full, ratio(requests, limits.requests_max, "requests, ") +
                                                       ratio(tokens.count(), limits.tokens_max.count(),
                                                             "tokens (prompt and max_tokens)") +
                                                       " would be waiting; retry later or raise the limit"),
                 load.drain.time_for(must_leave, now)};
}

std::optional<Refusal> Admission::refusal(const TenantId& tenant, Tokens cost, Instant now) const {
  const TenantOptions& own = options_of(tenant, options_);
  const Tokens most = std::min(options_.waiting_tokens_max, own.waiting_tokens_max);
  const std::string place = queue_of(options_.model).text();
  if (cost > most || cost.count() < 0)
    return Refusal{
        make_error(ErrorCode::invalid_input,
                   place + ": the request alone is " + ratio(cost.count(), most.count(), "tokens") +
                       " (prompt and max_tokens); lower max_tokens or raise waiting_tokens_max"),
        Millis(0)};
  auto refused = over(total_, {options_.waiting_requests_max, options_.waiting_tokens_max}, cost, now);
  if (refused) {
    refused->error.context = place + " is full: " + refused->error.context;
    return refused;
  }
  const auto found = tenants_.find(tenant);
  const Load idle;
  refused = over(found == tenants_.end() ? idle : found->second,
                 {own.waiting_requests_max, own.waiting_tokens_max}, cost, now);
  if (refused)
    refused->error.context = place + " is full for tenant '" + tenant.text() + "': " + refused->error.context;
  return refused;
}

void Admission::add(const TenantId& tenant, Tokens cost, Instant now) {
  total_.change(1, cost, now);
  tenants_[tenant].change(1, cost, now);
}

void Admission::remove(const TenantId& tenant, Tokens cost, Instant now) {
  total_.change(-1, Tokens(0) - cost, now);
  const auto found = tenants_.find(tenant);
  SANGAM_ASSERT(found != tenants_.end(), tenant);
  found->second.change(-1, Tokens(0) - cost, now);
  if (found->second.requests == 0) tenants_.erase(found);
}

void Admission::completed(const TenantId& tenant, Tokens cost, Instant now) {
  total_.completed(cost, now);
  if (const auto found = tenants_.find(tenant); found != tenants_.end()) found->second.completed(cost, now);
}

Millis Admission::time_to_drain(Instant now) const {
  return total_.drain.time_for(total_.tokens, now);
}

}  // namespace sangam
