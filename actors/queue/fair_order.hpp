// The fair order of what has no deadline: two lanes by share, and in a lane the tenants by weight.
//
// Start-time fair queueing (Goyal, Vin, Cheng, 1996) twice. Within a lane each request gets a start tag when
// it enters: the later of the lane's virtual time and the end of its tenant's former request, in tokens per
// unit of weight. The tag never changes, so it serves as a rank that can be told once. Between the lanes no
// such number exists (the share of a lane does not depend on how many tenants it has), so best effort ranks
// behind all that is normal, and whenever its lane is due one of its requests is promoted to the front.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"

namespace sangam {

/// Tokens per unit of weight, in 2^-20. A lane's starts at 0 whenever the lane falls idle; at a million
/// tokens a second without one pause, it would take 100 days to reach the ranks of the other lane.
using VirtualTime = std::uint64_t;

enum class Lane : std::uint8_t { none, normal, best_effort };

/// One request's place. Its owner keeps it from enter() to settle(), also while the request runs.
struct Place {
  Lane lane = Lane::none;  ///< None: a deadline decides, and the order has no part in it.
  TenantId tenant;
  std::int64_t weight = 1;
  Tokens cost{0};
  VirtualTime start = 0;
  bool promoted = false;
  bool charged = false;  ///< To the lane's share; the tenant's is charged by enter().

  /// Lowest first; 0 for what was promoted and for a former deadline.
  [[nodiscard]] std::uint64_t rank() const;
};

class FairOrder {
 public:
  explicit FairOrder(std::int64_t best_effort_percent);

  /// Tags the place and lets it wait.
  void enter(RequestId request, Place& place);
  /// Lets it wait again with the tag that it has.
  void resume(RequestId request, const Place& place);
  /// It waits no longer because it runs.
  void serve(RequestId request, Place& place);
  /// It waits no longer for any other reason; settle() follows.
  void withdraw(RequestId request, const Place& place);
  /// It has ended, and `used` of its cost was really used; the rest goes back to the tenant.
  void settle(const Place& place, Tokens used);
  /// The best-effort request that is due before everything else, at most one at a time. The owner marks its
  /// place as promoted.
  [[nodiscard]] std::optional<RequestId> promote();

 private:
  struct Flow {
    VirtualTime finish = 0;
    std::int64_t live = 0;  ///< Requests between enter() and settle().
  };
  struct LaneState {
    std::int64_t share = 1;
    VirtualTime start = 0;   ///< Of the lane's next request, against the other lane.
    VirtualTime served = 0;  ///< Virtual time inside the lane.
    std::int64_t live = 0;   ///< Requests between enter() and settle(); at 0 the tenants start equal again.
    std::set<std::pair<VirtualTime, RequestId>> waiting;
    std::map<TenantId, Flow> flows;
    /// Flows without requests that have had more than their share, by the time when this is made up for.
    std::set<std::pair<VirtualTime, TenantId>> idle;
  };
  [[nodiscard]] LaneState& lane(const Place& place) {
    return place.lane == Lane::normal ? normal_ : best_effort_;
  }
  static void forget_idle(LaneState& lane);
  void stop_waiting(RequestId request, const Place& place);

  LaneState normal_;
  LaneState best_effort_;
  VirtualTime served_ = 0;  ///< Virtual time between the lanes.
  std::optional<RequestId> promoted_;
};

}  // namespace sangam
