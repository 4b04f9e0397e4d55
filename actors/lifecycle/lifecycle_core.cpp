// What the life cycle hears, and how its orders begin and end.
#include "actors/lifecycle/lifecycle_core.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

/// After an order that failed for a reason that passes: live requests, a newer order.
constexpr Millis kRetryDelay{100};

/// What tells of the checkpoint, so that trying again soon cannot help.
bool is_the_models_fault(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::invalid_input || code == ErrorCode::not_found;
}

}  // namespace

LifecycleCore::LifecycleCore(LifecycleOptions options) : options_(std::move(options)), pinned_(options_.pinned) {}

void LifecycleCore::on(const InstanceState& state, Instant now, Outbox& out) {
  const auto [entry, is_new] = sites_.try_emplace({state.model, state.worker});
  Site& site = entry->second;
  if (!is_new && state.incarnation < site.state.incarnation) return;
  if (is_new && state.pinned) pinned_.insert(state.model);  // An operator's wish to the lifecycle before this one.
  const InstanceState former = std::exchange(site.state, state);
  const bool restarted = is_new || former.incarnation != state.incarnation;
  if (restarted || former.live > 0 || former.residency != state.residency) site.idle_since = now;
  if (state.residency == Residency::active && (restarted || former.residency != Residency::active)) {
    site.active_since = now;
    site.failures = 0;
    site.retry_at = {};
  }
  Host& host = hosts_[state.worker];
  host.live += state.live - former.live;
  if (std::max(state.residency, state.target) == Residency::active) {
    raised_.insert(entry->first);
    host.raised.insert(state.model);
  } else {
    raised_.erase(entry->first);
    host.raised.erase(state.model);
  }
  if (restarted || former.residency != state.residency || state.live == 0) changed_at(state.worker);
  const bool moved = restarted || former.residency != state.residency || former.target != state.target;
  replan_ = replan_ || moved || (state.live == 0 && !is_planned(entry->first));
  reconsider(now, out);
}

void LifecycleCore::on(const WorkerMemory& memory, Instant now, Outbox& out) {
  hosts_[memory.worker].memory = memory;
  changed_at(memory.worker);
  reconsider(now, out);
}

void LifecycleCore::on(const OrderEnded& ended, Instant now, Outbox& out) {
  const auto found = operations_.find(ended.operation);
  if (found == operations_.end() || found->second.worker != ended.worker) return;
  const Operation operation = std::move(found->second);
  operations_.erase(found);
  ordered_.extract(SiteKey{operation.order.model, operation.worker});
  conclude(operation, ended, now, out);
  replan_ = true;
  reconsider(now, out);
}

void LifecycleCore::conclude(const Operation& operation, OrderEnded ended, Instant now, Outbox& out) {
  const SiteKey key{operation.order.model, operation.worker};
  const bool good = ended.code == ErrorCode::none;
  out.log(good ? LogLevel::info : LogLevel::warning, "lifecycle.order_ended",
          {{"model", key.first.text()},
           {"worker", key.second.text()},
           {"operation", std::to_string(ended.operation)},
           {"why", ended.why}});
  if (!good && operation.order.target != Residency::cold) note_failure(key, ended, now);
  const auto wish = wishes_.find(operation.wish);
  if (wish == wishes_.end()) return;
  wish->second.ended.push_back(std::move(ended));
  if (--wish->second.open == 0) end_wish(wish->first, out);
}

void LifecycleCore::note_failure(const SiteKey& key, const OrderEnded& ended, Instant now) {
  const auto found = sites_.find(key);
  if (found == sites_.end()) return;
  Site& site = found->second;
  if (ended.code == ErrorCode::exhausted) full_.insert(key);
  if (!is_the_models_fault(ended.code)) {
    site.retry_at = now + kRetryDelay;
    return;
  }
  site.state.code = ended.code;
  site.state.why = ended.why;
  const auto doublings = std::min<std::uint64_t>(site.failures++, 16);
  site.retry_at = now + std::min(options_.cool_down_first * (1 << doublings), options_.cool_down_max);
}

void LifecycleCore::on(const Wanted& wanted, Instant now, Outbox& out) {
  if (wanted.waiting <= 0) {
    wanted_.erase(wanted.model);
    return reconsider(now, out);
  }
  const auto [entry, is_new] = wanted_.try_emplace(wanted.model);
  entry->second.waiting = wanted.waiting;
  if (is_new) entry->second.since = now;
  reconsider(now, out);
}

void LifecycleCore::on(const ActorLost& lost, Instant now, Outbox& out) {
  hosts_.erase(lost.actor);
  changed_at(lost.actor);
  std::erase_if(sites_, [&](const auto& site) { return site.first.second == lost.actor; });
  std::erase_if(raised_, [&](const SiteKey& key) { return key.second == lost.actor; });
  std::erase_if(wishes_, [&](const auto& wish) { return wish.second.gateway == lost.actor; });
  std::vector<Operation> gone;
  std::erase_if(operations_, [&](const auto& operation) {
    if (operation.second.worker != lost.actor) return false;
    gone.push_back(operation.second);
    return true;
  });
  std::erase_if(ordered_, [&](const SiteKey& key) { return key.second == lost.actor; });
  for (const Operation& operation : gone) {
    OrderEnded ended;
    ended.operation = operation.order.operation;
    ended.worker = lost.actor;
    ended.model = operation.order.model;
    ended.code = ErrorCode::unavailable;
    ended.why = lost.actor.text() + " was lost: " + lost.why;
    conclude(operation, std::move(ended), now, out);
  }
  reconsider(now, out);
}

void LifecycleCore::wake(Timer, Instant now, Outbox& out) {
  reconsider(now, out);
}

void LifecycleCore::give(const SiteKey& key, Order order, Purpose purpose, std::uint64_t wish, Outbox& out) {
  order.operation = ++next_operation_;
  order.epoch = std::uint64_t(options_.incarnation);
  order.incarnation = sites_.at(key).state.incarnation;
  order.model = key.first;
  if (order.target == Residency::active) sites_.at(key).role = order.role;
  out.log(LogLevel::info, "lifecycle.order",
          {{"model", key.first.text()},
           {"worker", key.second.text()},
           {"operation", std::to_string(order.operation)},
           {"target", std::string(name_of(order.target))}});
  operations_[order.operation] = {order, key.second, purpose, wish};
  ordered_.insert(key);
  out.send(key.second, std::move(order));
}

bool LifecycleCore::is_ordered(const ModelId& model, Purpose purpose) const {
  return std::any_of(operations_.begin(), operations_.end(), [&](const auto& entry) {
    return entry.second.order.model == model && entry.second.purpose == purpose;
  });
}

bool LifecycleCore::is_ordered(const SiteKey& key) const { return ordered_.contains(key); }

/// Room may have come: whoever found none there may try again.
void LifecycleCore::changed_at(const ActorName& worker) {
  std::erase_if(full_, [&](const SiteKey& key) { return key.second == worker; });
}

}  // namespace sangam
