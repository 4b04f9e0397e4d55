// What the oracle hears of requests that have ended: gathered, and told twice a second.
#pragma once

#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// Silent, and empty, while no oracle is here.
class ServedDesk {
 public:
  static constexpr Timer kTimer{2};  ///< Of the core.

  explicit ServedDesk(ActorName gateway) : gateway_(std::move(gateway)) {}

  /// Requests beyond what one letter may hold are not told: a sample is enough.
  void ended(ServedRequest request, Instant now, Outbox& out);
  void found(const ActorName& actor);
  void lost(const ActorName& actor);
  void wake(Outbox& out);

 private:
  ActorName gateway_;
  std::vector<ServedRequest> requests_;
  bool oracle_is_here_ = false;
};

}  // namespace sangam
