// Tags and accounts of the fair order. Charges are rounded once, so that what is given back is what was
// taken.
#include "actors/queue/fair_order.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr VirtualTime kBehindNormal = VirtualTime(1) << 63;
/// Tenants without requests whose debt is remembered; the smallest debts are forgiven first.
constexpr std::size_t kIdleMax = 1024;

VirtualTime charge(Tokens tokens, std::int64_t weight) {
  return (VirtualTime(tokens.count()) << 20) / VirtualTime(weight);
}

VirtualTime given_back(const Place& place, Tokens used, std::int64_t weight) {
  return charge(place.cost, weight) - charge(std::min(used, place.cost), weight);
}

VirtualTime minus(VirtualTime a, VirtualTime b) {
  return a > b ? a - b : 0;
}

}  // namespace

std::uint64_t Place::rank() const {
  if (promoted || lane == Lane::none) return 0;
  return lane == Lane::normal ? start + 1 : kBehindNormal + start;
}

FairOrder::FairOrder(std::int64_t best_effort_percent) {
  SANGAM_ASSERT(best_effort_percent >= 0 && best_effort_percent <= 50, best_effort_percent);
  normal_.share = 100 - best_effort_percent;
  best_effort_.share = best_effort_percent;
}

void FairOrder::enter(RequestId request, Place& place) {
  if (place.lane == Lane::none) return;
  LaneState& in = lane(place);
  Flow& flow = in.flows[place.tenant];
  ++in.live;
  if (flow.live++ == 0) in.idle.erase({flow.finish, place.tenant});
  place.start = std::max(in.served, flow.finish);
  flow.finish = place.start + charge(place.cost, place.weight);
  resume(request, place);
}

void FairOrder::resume(RequestId request, const Place& place) {
  if (place.lane == Lane::none) return;
  LaneState& in = lane(place);
  if (in.waiting.empty()) in.start = std::max(in.start, served_);
  in.waiting.insert({place.start, request});
}

void FairOrder::stop_waiting(RequestId request, const Place& place) {
  const std::size_t erased = lane(place).waiting.erase({place.start, request});
  SANGAM_ASSERT(erased == 1, request, place.start);
  if (promoted_ == request) promoted_.reset();
}

void FairOrder::serve(RequestId request, Place& place) {
  if (place.lane == Lane::none) return;
  stop_waiting(request, place);
  LaneState& in = lane(place);
  in.served = std::max(in.served, place.start);
  forget_idle(in);
  if (place.charged || in.share == 0) return;
  place.charged = true;
  served_ = std::max(served_, in.start);
  in.start += charge(place.cost, in.share);
}

void FairOrder::withdraw(RequestId request, const Place& place) {
  if (place.lane != Lane::none) stop_waiting(request, place);
}

void FairOrder::settle(const Place& place, Tokens used) {
  if (place.lane == Lane::none) return;
  LaneState& in = lane(place);
  if (place.charged) in.start = minus(in.start, given_back(place, used, in.share));
  Flow& flow = in.flows[place.tenant];
  SANGAM_ASSERT(flow.live > 0, place.tenant);
  flow.finish = minus(flow.finish, given_back(place, used, place.weight));
  if (--flow.live == 0) in.idle.insert({flow.finish, place.tenant});
  if (--in.live == 0) in.served = 0;
  forget_idle(in);
}

void FairOrder::forget_idle(LaneState& lane) {
  const auto settled = [&] { return lane.live == 0 || lane.idle.begin()->first <= lane.served; };
  while (!lane.idle.empty() && (settled() || lane.idle.size() > kIdleMax)) {
    lane.flows.erase(lane.idle.begin()->second);
    lane.idle.erase(lane.idle.begin());
  }
}

std::optional<RequestId> FairOrder::promote() {
  const bool contended = !normal_.waiting.empty() && !best_effort_.waiting.empty();
  if (promoted_ || !contended || best_effort_.share == 0 || best_effort_.start >= normal_.start)
    return std::nullopt;
  promoted_ = best_effort_.waiting.begin()->second;
  return promoted_;
}

}  // namespace sangam
