// What is wanted and what is idle: whom to wake and where, who makes room, who sleeps.
#include <algorithm>
#include <tuple>

#include "actors/lifecycle/lifecycle_core.hpp"

namespace sangam {
namespace {

constexpr Timer kReconsider{1};
constexpr Instant kNever = Instant::max();

}  // namespace

void LifecycleCore::reconsider(Instant now, Outbox& out) {
  std::vector<std::pair<Instant, ModelId>> in_turn;
  for (const auto& [model, demand] : wanted_) in_turn.emplace_back(demand.since, model);
  std::sort(in_turn.begin(), in_turn.end());
  for (const auto& [since, model] : in_turn) serve(model, wanted_.at(model), now, out);
  put_idle_to_sleep(now, out);
  if (replan_) carry_out_plans(now, out);
  if (const Instant next = next_occasion(now); next != kNever) out.set_timer(kReconsider, next);
}

void LifecycleCore::serve(const ModelId& model, const Demand& demand, Instant now, Outbox& out) {
  if (is_ordered(model, Purpose::demand)) return;
  bool somewhere = false;
  for (const auto& [key, site] : sites_) {
    if (key.first != model) continue;
    if (site.state.residency == Residency::active && site.state.target == Residency::active) return;
    if (site.state.target == Residency::active) return;  // On its way, by whatever wish.
    somewhere = true;
  }
  if (!somewhere) return;  // No worker has it; the gateway knows.
  Site* site = best_site(model, now);
  if (site == nullptr) return give_up(model, now, out);
  const SiteKey key{model, site->state.worker};
  if (is_ordered(key)) return;
  const std::vector<ModelId> offer = evictable(key.second, model, now);
  if (!site->no_room || offer != site->offered) {
    site->offered = offer;
    Order order;
    order.target = Residency::active;
    order.may_evict = offer;
    order.sources = active_elsewhere(key);
    give(key, std::move(order), Purpose::demand, 0, out);
  } else if (now >= demand.since + options_.patience) {
    make_room(*site, now, out);
  }
}

/// Where it is soonest there and disturbs least: with room before without, warm before cold, then where least is
/// missing, then the idlest worker.
LifecycleCore::Site* LifecycleCore::best_site(const ModelId& model, Instant now) {
  const auto load_of = [&](const ActorName& worker) {
    std::int64_t live = 0;
    for (const auto& [key, site] : sites_) live += key.second == worker ? site.state.live : 0;
    return live;
  };
  const auto rank = [&](const Site& site) {
    const auto [too_big, missing] = room_rank(site);
    return std::tuple(site.no_room, too_big, site.state.residency != Residency::warm, missing,
                      load_of(site.state.worker), site.state.worker);
  };
  Site* best = nullptr;
  for (auto& [key, site] : sites_) {
    if (key.first != model || site.retry_at > now) continue;
    if (best == nullptr || rank(site) < rank(*best)) best = &site;
  }
  return best;
}

std::pair<bool, Bytes> LifecycleCore::room_rank(const Site& site) const {
  const auto memory = memories_.find(site.state.worker);
  const bool too_big = memory != memories_.end() && site.state.missing > memory->second.free + memory->second.cached;
  return {too_big, site.state.missing};
}

/// Idle, unpinned, not wanted, and long enough there; who has been idle longest goes first.
std::vector<ModelId> LifecycleCore::evictable(const ActorName& worker, const ModelId& but, Instant now) const {
  std::vector<std::pair<Instant, ModelId>> idle;
  for (const auto& [key, site] : sites_) {
    const auto& [model, at] = key;
    const bool at_rest = site.state.residency == Residency::active && site.state.target == Residency::active;
    if (at != worker || model == but || !at_rest || site.state.live > 0) continue;
    const auto planned = planned_on_.find(worker);
    if (planned != planned_on_.end() && planned->second.contains(model)) continue;
    if (pinned_.contains(model) || wanted_.contains(model)) continue;
    if (now >= site.active_since + options_.dwell) idle.emplace_back(site.idle_since, model);
  }
  std::sort(idle.begin(), idle.end());
  std::vector<ModelId> models;
  for (auto& [since, model] : idle) models.push_back(std::move(model));
  return models;
}

/// The wanted model has been patient; the one that has been there longest is drained for it.
void LifecycleCore::make_room(const Site& wanted, Instant now, Outbox& out) {
  const ActorName& worker = wanted.state.worker;
  const Site* oldest = nullptr;
  for (const auto& [key, site] : sites_) {
    if (key.second != worker || is_ordered(key)) {
      if (key.second == worker && site.state.target < site.state.residency) return;  // One is leaving already.
      continue;
    }
    if (site.state.residency != Residency::active || pinned_.contains(key.first)) continue;
    if (now < site.active_since + options_.dwell) continue;
    if (oldest == nullptr || site.active_since < oldest->active_since) oldest = &site;
  }
  if (oldest == nullptr) return;
  Order order;
  order.target = Residency::warm;
  order.drain_for = options_.drain_for;
  order.at_deadline = AtDeadline::migrate;
  give({oldest->state.model, worker}, std::move(order), Purpose::room, 0, out);
}

/// Every place where the model could be is cooling down, or is to be tried again in a moment.
void LifecycleCore::give_up(const ModelId& model, Instant now, Outbox& out) {
  const Site* soonest = nullptr;
  for (const auto& [key, site] : sites_) {
    if (key.first != model) continue;
    if (soonest == nullptr || site.retry_at < soonest->retry_at) soonest = &site;
  }
  if (soonest->failures == 0) return;
  const auto left = std::chrono::ceil<Millis>(soonest->retry_at - now);
  out.send(queue_of(model), Unservable{model, soonest->state.code, soonest->state.why, left});
  wanted_.erase(model);
}

void LifecycleCore::put_idle_to_sleep(Instant now, Outbox& out) {
  if (options_.idle_sleep <= Millis(0)) return;
  for (const auto& [key, site] : sites_) {
    const bool at_rest = site.state.residency == Residency::active && site.state.target == Residency::active;
    if (!at_rest || site.state.live > 0 || pinned_.contains(key.first) || wanted_.contains(key.first)) continue;
    if (now < std::max(site.idle_since + options_.idle_sleep, site.retry_at) || is_ordered(key)) continue;
    Order order;
    order.target = Residency::warm;
    order.idle_at_least = options_.idle_sleep;
    give(key, std::move(order), Purpose::idle, 0, out);
  }
}

/// When time alone changes a decision: a sleep is due, patience or a dwell ends, a model has cooled down.
Instant LifecycleCore::next_occasion(Instant now) const {
  Instant next = retry_plans_at_ > now ? retry_plans_at_ : kNever;
  if (wanted_.empty() && options_.idle_sleep <= Millis(0)) return next;
  const auto consider = [&](Instant at) {
    if (at > now) next = std::min(next, at);
  };
  for (const auto& [key, site] : sites_) {
    consider(site.retry_at);
    if (site.state.residency != Residency::active) continue;
    if (!wanted_.empty()) consider(site.active_since + options_.dwell);
    if (options_.idle_sleep > Millis(0) && site.state.live == 0) consider(site.idle_since + options_.idle_sleep);
  }
  for (const auto& [model, demand] : wanted_) consider(demand.since + options_.patience);
  return next;
}

}  // namespace sangam
