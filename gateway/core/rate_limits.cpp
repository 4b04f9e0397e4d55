// Token buckets per tenant.
#include "gateway/core/rate_limits.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

constexpr double kMicrosPerMinute = 60e6;

}  // namespace

double RateLimits::Bucket::level_at(Instant now) const {
  const double gained = limit * double(std::max(Micros{0}, now - at).count()) / kMicrosPerMinute;
  return std::min(limit, level + gained);
}

Millis RateLimits::Bucket::until(double wanted, Instant now) const {
  const double missing = std::min(wanted, limit) - level_at(now);
  return Millis(std::int64_t(std::ceil(std::max(0.0, missing) / limit * kMicrosPerMinute / 1000.0)));
}

void RateLimits::Bucket::add(double amount, Instant now) {
  level = std::min(limit, level_at(now) + amount);
  at = now;
}

RateAllowance RateLimits::Bucket::allowance(Instant now) const {
  return {std::int64_t(limit), std::int64_t(std::max(0.0, std::floor(level_at(now)))), until(limit, now)};
}

RateLimits::RateLimits(const std::vector<ApiKey>& keys) {
  const auto widen = [](std::optional<Bucket>& bucket, std::int64_t limit) {
    if (limit <= 0) return;
    const double most = std::max(double(limit), bucket ? bucket->limit : 0.0);
    bucket = Bucket{most, most, Instant{}};
  };
  for (const ApiKey& key : keys) {
    widen(tenants_[key.tenant].requests, key.requests_per_minute);
    widen(tenants_[key.tenant].tokens, key.tokens_per_minute.count());
  }
}

std::optional<Millis> RateLimits::take(const TenantId& tenant, Tokens tokens, Instant now) {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return std::nullopt;
  auto& [requests, budget] = found->second;
  const double wanted = double(tokens.count());
  Millis wait{0};
  if (requests) wait = std::max(wait, requests->until(1.0, now));
  if (budget) wait = std::max(wait, budget->until(wanted, now));
  if (wait > Millis{0}) return wait;
  if (requests) requests->add(-1.0, now);
  if (budget) budget->add(-wanted, now);
  return std::nullopt;
}

void RateLimits::give_back(const TenantId& tenant, Tokens tokens, Instant now) {
  const auto found = tenants_.find(tenant);
  if (found != tenants_.end() && found->second.tokens) found->second.tokens->add(double(tokens.count()), now);
}

RateState RateLimits::state_of(const TenantId& tenant, Instant now) const {
  RateState state;
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return state;
  if (found->second.requests) state.requests = found->second.requests->allowance(now);
  if (found->second.tokens) state.tokens = found->second.tokens->allowance(now);
  return state;
}

}  // namespace sangam
