// Who may still wait: limits in requests and in tokens, in all and for each tenant.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "actors/queue/drain_rate.hpp"
#include "actors/queue/queue_options.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

struct Refusal {
  Error error;
  Millis retry_after{0};  ///< 0: unknown.
};

/// Counts what waits. A tenant is remembered only while it has something waiting.
class Admission {
 public:
  explicit Admission(const QueueOptions& options);

  /// Why one more request of `cost` tokens may not wait now; nothing where it may.
  [[nodiscard]] std::optional<Refusal> refusal(const TenantId& tenant, Tokens cost, Instant now) const;
  void add(const TenantId& tenant, Tokens cost, Instant now);
  void remove(const TenantId& tenant, Tokens cost, Instant now);
  /// A run of `cost` tokens has ended, which is what lets the backlog drain.
  void completed(const TenantId& tenant, Tokens cost, Instant now);
  /// How long all that waits now takes to drain; 0: unknown.
  [[nodiscard]] Millis time_to_drain(Instant now) const;

  [[nodiscard]] std::int64_t requests() const { return total_.requests; }
  [[nodiscard]] Tokens tokens() const { return total_.tokens; }

 private:
  struct Load {
    std::int64_t requests = 0;
    Tokens tokens{0};
    DrainRate drain;

    void change(std::int64_t request_delta, Tokens token_delta, Instant now);
    void completed(Tokens cost, Instant now);
  };
  struct Limits {
    std::int64_t requests_max;
    Tokens tokens_max;
  };
  [[nodiscard]] std::optional<Refusal> over(const Load& load, const Limits& limits, Tokens cost,
                                            Instant now) const;

  const QueueOptions& options_;
  Load total_;
  std::map<TenantId, Load> tenants_;
};

}  // namespace sangam
