// Two thresholds and a dwell each way, so that a model at the edge does not go to and fro.
#include "actors/placement/pools.hpp"

namespace sangam {

void SteadyPool::restore(const ModelId& model, Instant now) {
  members_[model] = {true, std::nullopt, now};
}

bool SteadyPool::is_late(const Member& member, const ModelTraffic& traffic) const {
  return traffic.attainment < (member.is_in ? options_.attainment_leave : options_.attainment_enter);
}

bool SteadyPool::looks_steady(const Member& member, const ModelTraffic& traffic, Instant now) const {
  if (is_late(member, traffic) || now < member.away_until) return false;
  const double size_most = member.is_in ? options_.size_leave : options_.size_enter;
  const double volatility_most = member.is_in ? options_.volatility_leave : options_.volatility_enter;
  if (traffic.size > size_most) return false;
  return traffic.volatility <= volatility_most || traffic.size * traffic.volatility <= options_.peak_small;
}

bool SteadyPool::see(const ModelId& model, const ModelTraffic& traffic, Instant now) {
  const auto [entry, is_new] = members_.try_emplace(model);
  Member& member = entry->second;
  if (is_new || !traffic.is_idle) member.busy_at = now;
  if (traffic.is_idle) {
    member.unlike_since.reset();
    if (!member.is_in || now < member.busy_at + options_.idle_leave) return false;
    member.is_in = false;
    return true;
  }
  if (looks_steady(member, traffic, now) == member.is_in) {
    member.unlike_since.reset();
    return false;
  }
  if (!member.unlike_since) member.unlike_since = now;
  const Millis dwell = member.is_in ? options_.leave_dwell : options_.enter_dwell;
  if (now < *member.unlike_since + dwell) return false;
  if (member.is_in && is_late(member, traffic)) member.away_until = now + options_.late_away;
  member.is_in = !member.is_in;
  member.unlike_since.reset();
  return true;
}

bool SteadyPool::holds(const ModelId& model) const {
  const auto found = members_.find(model);
  return found != members_.end() && found->second.is_in;
}

}  // namespace sangam
