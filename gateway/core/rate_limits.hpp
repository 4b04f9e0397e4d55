// Requests and tokens a minute of each tenant, as token buckets that hold one minute's worth.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "gateway/options.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// One bucket as a client is told of it (x-ratelimit-*).
struct RateAllowance {
  std::int64_t limit = 0;
  std::int64_t remaining = 0;
  Millis reset{0};  ///< Until the bucket is full again.
};
struct RateState {
  std::optional<RateAllowance> requests, tokens;
};

class RateLimits {
 public:
  explicit RateLimits(const std::vector<ApiKey>& keys);

  /// Takes one request and `tokens`, or nothing: then how long until that would fit. A request above a whole
  /// minute's tokens fits once the bucket is full, and leaves a debt.
  [[nodiscard]] std::optional<Millis> take(const TenantId& tenant, Tokens tokens, Instant now);
  /// What was taken and not used after all.
  void give_back(const TenantId& tenant, Tokens tokens, Instant now);
  [[nodiscard]] RateState state_of(const TenantId& tenant, Instant now) const;

 private:
  /// Fills evenly; `level` is as of `at`.
  struct Bucket {
    double limit = 0.0;
    double level = 0.0;
    Instant at{};
    [[nodiscard]] double level_at(Instant now) const;
    [[nodiscard]] Millis until(double wanted, Instant now) const;
    void add(double amount, Instant now);
    [[nodiscard]] RateAllowance allowance(Instant now) const;
  };
  struct Tenant {
    std::optional<Bucket> requests, tokens;
  };
  std::map<TenantId, Tenant> tenants_;
};

}  // namespace sangam
