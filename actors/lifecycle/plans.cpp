// What planners want: who shall be where becomes an order where it is not so, in the steps of the plan; who shall be
// nowhere leaves when nobody needs him any more.
#include <algorithm>

#include "actors/lifecycle/lifecycle_core.hpp"

namespace sangam {

void LifecycleCore::on(const Plan& plan, Instant now, Outbox& out) {
  Plan& known = plans_[plan.by];
  if (plan.epoch < known.epoch) return;
  known = plan;
  planned_.clear();
  planned_on_.clear();
  for (const auto& [by, each] : plans_) {
    for (const ModelId& model : each.models) planned_[model];
    for (const ActorName& worker : each.workers) planned_on_[worker];
    for (const PlannedInstance& instance : each.instances) {
      planned_[instance.model].insert(instance.worker);
      planned_on_[instance.worker].insert(instance.model);
    }
  }
  replan_ = true;
  reconsider(now, out);
}

void LifecycleCore::carry_out_plans(Instant now, Outbox& out) {
  replan_ = false;
  retry_plans_at_ = {};
  if (plans_.empty()) return;
  for (const auto& [by, plan] : plans_) raise_planned(plan, now, out);
  for (const SiteKey& key : std::set<SiteKey>(raised_)) lower_unplanned(key, now, out);
}

/// Active, and to stay so.
bool LifecycleCore::is_up(const SiteKey& key) const {
  const auto site = sites_.find(key);
  return site != sites_.end() && std::min(site->second.state.residency, site->second.state.target) == Residency::active;
}

bool LifecycleCore::is_planned(const SiteKey& key) const {
  const auto places = planned_.find(key.first);
  return places != planned_.end() && places->second.contains(key.second);
}

void LifecycleCore::raise_planned(const Plan& plan, Instant now, Outbox& out) {
  std::int64_t reached = INT64_MAX;  // The first step that is not complete. Who is not here or broken holds up nobody.
  for (const PlannedInstance& planned : plan.instances) {
    const auto site = sites_.find({planned.model, planned.worker});
    if (site == sites_.end() || site->second.failures > 0 || is_up(site->first)) continue;
    reached = std::min(reached, planned.step);
  }
  for (const PlannedInstance& planned : plan.instances) {
    if (planned.step > reached) continue;
    const auto site = sites_.find({planned.model, planned.worker});
    if (site != sites_.end()) raise(planned, site->second, now, out);
  }
}

void LifecycleCore::raise(const PlannedInstance& planned, Site& site, Instant now, Outbox& out) {
  const SiteKey key{planned.model, planned.worker};
  if (is_up(key) && site.role == planned.role) return;
  if (!is_up(key) && site.state.target == Residency::active) return;  // On its way.
  if (is_ordered(key)) return;
  if (site.retry_at > now) {
    retry_plans_at_ = retry_plans_at_ == Instant{} ? site.retry_at : std::min(retry_plans_at_, site.retry_at);
    return;
  }
  Order order;
  order.target = Residency::active;
  order.role = planned.role;
  order.sources = planned.sources.empty() ? active_elsewhere(key) : planned.sources;
  order.may_evict = evictable(key.second, key.first, now);
  if (full_.contains(key) && order.may_evict == site.offered) return;  // Until something leaves.
  site.offered = order.may_evict;
  give(key, std::move(order), Purpose::plan, 0, out);
}

void LifecycleCore::lower_unplanned(const SiteKey& key, Instant now, Outbox& out) {
  const auto found = sites_.find(key);
  if (found == sites_.end() || !is_up(key) || is_ordered(key)) return;
  if (!is_due_to_leave(key, found->second, now)) return;
  Order order;
  order.target = Residency::warm;
  order.drain_for = options_.drain_for;
  order.at_deadline = AtDeadline::migrate;
  give(key, std::move(order), Purpose::plan, 0, out);
}

/// It is in no plan though its model or its worker is in one; and its model is up elsewhere or idle, or its room is
/// needed. Who has just been woken stays a moment: it was wanted, and a planner may be about to keep it.
bool LifecycleCore::is_due_to_leave(const SiteKey& key, const Site& site, Instant now) const {
  const auto& [model, worker] = key;
  if (pinned_.contains(model)) return false;
  const auto places = planned_.find(model);
  const auto others = planned_on_.find(worker);
  const bool planned_for = places != planned_.end();
  if (!planned_for && others == planned_on_.end()) return false;
  if (is_planned(key)) return false;
  const auto finds_no_room = [&](const ModelId& newcomer) { return full_.contains({newcomer, worker}); };
  if (others != planned_on_.end() && std::any_of(others->second.begin(), others->second.end(), finds_no_room)) {
    return true;
  }
  if (now < site.active_since + options_.dwell || wanted_.contains(model)) return false;
  if (site.state.live == 0) return true;
  return planned_for && std::all_of(places->second.begin(), places->second.end(),
                                    [&](const ActorName& place) { return is_up({model, place}); });
}

}  // namespace sangam
