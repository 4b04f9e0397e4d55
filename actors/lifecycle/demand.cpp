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
  if (is_rising(model) || is_ordered(model, Purpose::demand)) return;  // By whatever wish.
  if (sites_of(model).empty()) return;  // No worker has it; the gateway knows.
  Site* site = best_site(model, now);
  if (site == nullptr) return give_up(model, now, out);
  const SiteKey key{model, site->state.worker};
  if (is_ordered(key)) return;
  const std::vector<ModelId> offer = evictable(key.second, model, now);
  if (!full_.contains(key) || offer != site->offered) {
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

bool LifecycleCore::is_rising(const ModelId& model) const {
  for (auto key = raised_.lower_bound({model, ActorName()}); key != raised_.end() && key->first == model; ++key) {
    if (sites_.at(*key).state.target == Residency::active) return true;
  }
  return false;
}

/// Where it is soonest there and disturbs least: with room before without, warm before cold, then where least is
/// missing, then the idlest worker.
LifecycleCore::Site* LifecycleCore::best_site(const ModelId& model, Instant now) {
  const auto rank = [&](const Site& site) {
    const auto [too_big, missing] = room_rank(site);
    return std::tuple(full_.contains({model, site.state.worker}), too_big, site.state.residency != Residency::warm,
                      missing, hosts_.at(site.state.worker).live);
  };
  Site* best = nullptr;
  decltype(rank(*best)) best_rank{};
  for (auto& [key, site] : sites_of(model)) {
    if (site.retry_at > now) continue;
    if (const auto own = rank(site); best == nullptr || own < best_rank) best = &site, best_rank = own;
  }
  return best;
}

std::pair<bool, Bytes> LifecycleCore::room_rank(const Site& site) const {
  const auto& memory = hosts_.at(site.state.worker).memory;
  const bool too_big = memory && site.state.missing > memory->free + memory->cached;
  return {too_big, site.state.missing};
}

/// Idle, unpinned, not wanted, and long enough there; who has been idle longest goes first.
std::vector<ModelId> LifecycleCore::evictable(const ActorName& worker, const ModelId& but, Instant now) const {
  std::vector<std::pair<Instant, ModelId>> idle;
  for (const ModelId& model : hosts_.at(worker).raised) {
    const Site& site = sites_.at({model, worker});
    if (model == but || !is_up({model, worker}) || site.state.live > 0) continue;
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
  for (const ModelId& model : hosts_.at(worker).raised) {
    const Site& site = sites_.at({model, worker});
    if (site.state.target < site.state.residency) return;  // One is leaving already.
    if (is_ordered({model, worker})) continue;
    if (site.state.residency != Residency::active || pinned_.contains(model)) continue;
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
  for (const auto& [key, site] : sites_of(model)) {
    if (soonest == nullptr || site.retry_at < soonest->retry_at) soonest = &site;
  }
  if (soonest->failures == 0) return;
  const auto left = std::chrono::ceil<Millis>(soonest->retry_at - now);
  out.send(queue_of(model), Unservable{model, soonest->state.code, soonest->state.why, left});
  wanted_.erase(model);
}

void LifecycleCore::put_idle_to_sleep(Instant now, Outbox& out) {
  if (options_.idle_sleep <= Millis(0)) return;
  for (const SiteKey& key : raised_) {
    const Site& site = sites_.at(key);
    if (!is_up(key) || site.state.live > 0 || pinned_.contains(key.first) || wanted_.contains(key.first)) continue;
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
  const auto consider = [&](Instant at) {
    if (at > now) next = std::min(next, at);
  };
  if (wanted_.empty() && options_.idle_sleep <= Millis(0)) return next;
  for (const auto& [model, demand] : wanted_) {
    for (const auto& [key, site] : sites_of(model)) consider(site.retry_at);
  }
  for (const SiteKey& key : raised_) {
    const Site& site = sites_.at(key);
    consider(site.retry_at);
    if (site.state.residency != Residency::active) continue;
    if (!wanted_.empty()) consider(site.active_since + options_.dwell);
    if (options_.idle_sleep > Millis(0) && site.state.live == 0) consider(site.idle_since + options_.idle_sleep);
  }
  for (const auto& [model, demand] : wanted_) consider(demand.since + options_.patience);
  return next;
}

}  // namespace sangam
