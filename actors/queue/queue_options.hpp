// What an operator decides about one model's queue.
#pragma once

#include <cstdint>
#include <map>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

struct TenantOptions {
  std::int64_t weight = 1;  ///< Share relative to other tenants' weights, 1 to 1,000,000.
  std::int64_t waiting_requests_max = 256;
  Tokens waiting_tokens_max{1'000'000};  ///< Prompt and max_tokens of all that waits.
};

struct QueueOptions {
  ModelId model;
  ActorName scheduler{"scheduler"};
  std::int64_t waiting_requests_max = 1024;
  Tokens waiting_tokens_max{4'000'000};
  TenantOptions tenant_default;  ///< For each tenant that the table does not name.
  std::map<TenantId, TenantOptions> tenants;
  std::int64_t best_effort_percent = 5;  ///< Floor share of best effort beside normal requests, 0 to 50.
  Millis interrupted_kept{30'000};       ///< How long a request whose worker died may take to come back.
  Millis status_every{500};
};

[[nodiscard]] inline const TenantOptions& options_of(const TenantId& tenant, const QueueOptions& options) {
  const auto found = options.tenants.find(tenant);
  return found == options.tenants.end() ? options.tenant_default : found->second;
}

}  // namespace sangam
