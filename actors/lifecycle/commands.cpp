// What operators ask for: a command becomes an order for each place that it means.
#include <algorithm>

#include "actors/lifecycle/lifecycle_core.hpp"

namespace sangam {
namespace {

Residency target_of(CommandVerb verb) {
  switch (verb) {
    case CommandVerb::wake:
    case CommandVerb::fork: return Residency::active;
    case CommandVerb::unload: return Residency::cold;
    case CommandVerb::load:
    case CommandVerb::sleep:
    case CommandVerb::drain: break;
  }
  return Residency::warm;
}

bool raises(CommandVerb verb) {
  return verb == CommandVerb::load || verb == CommandVerb::wake || verb == CommandVerb::fork;
}

/// An empty list names everyone.
template <class T>
bool names(const std::vector<T>& list, const T& one) {
  return list.empty() || std::find(list.begin(), list.end(), one) != list.end();
}

CommandEnded failed(std::uint64_t command, const Error& error) {
  CommandEnded ended;
  ended.command = command;
  ended.code = error.code;
  ended.why = error.context;
  return ended;
}

}  // namespace

void LifecycleCore::on(const Command& command, Instant now, Outbox& out) {
  if (wishes_.size() >= options_.commands_max) {
    const auto error = make_error(ErrorCode::queue_full, "lifecycle: " + std::to_string(wishes_.size()) +
                                                             " commands are under way; try again later");
    out.send(command.answer_to, failed(command.command, error));
    return;
  }
  const auto sites = sites_of(command);
  if (!sites) {
    out.send(command.answer_to, failed(command.command, sites.error()));
    return;
  }
  note_pins(command);
  const std::uint64_t id = ++next_wish_;
  wishes_[id] = {command.answer_to, command.command, sites->size(), {}};
  for (const SiteKey& key : *sites) give(key, order_for(command, key, now), Purpose::command, id, out);
  if (command.pin && raises(command.verb)) pin_where_it_is(command, now, out);
  if (sites->empty()) end_wish(id, out);
  reconsider(now, out);
}

/// Also of what is there already. Whoever puts a model to sleep wants it no longer there.
void LifecycleCore::note_pins(const Command& command) {
  for (const auto& [key, site] : sites_) {
    if (!names(command.models, key.first)) continue;
    if (!raises(command.verb)) {
      pinned_.erase(key.first);
    } else if (command.pin) {
      pinned_.insert(key.first);
    }
  }
}

/// Nothing changes there but what the worker remembers, so nobody waits for it.
void LifecycleCore::pin_where_it_is(const Command& command, Instant now, Outbox& out) {
  std::vector<SiteKey> there;
  for (const auto& [key, site] : sites_) {
    const bool is_meant = names(command.models, key.first) && names(command.workers, key.second);
    const bool is_there = site.state.residency == target_of(command.verb) && site.state.target == site.state.residency;
    if (is_meant && is_there && !site.state.pinned) there.push_back(key);
  }
  for (const SiteKey& key : there) give(key, order_for(command, key, now), Purpose::command, 0, out);
}

/// The places where there is something to do.
Result<std::vector<LifecycleCore::SiteKey>> LifecycleCore::sites_of(const Command& command) const {
  const auto is_known = [&](const auto& matches) {
    return std::any_of(sites_.begin(), sites_.end(), [&](const auto& entry) { return matches(entry.first); });
  };
  for (const ActorName& worker : command.workers) {
    if (is_known([&](const SiteKey& key) { return key.second == worker; })) continue;
    return make_error(ErrorCode::not_found, "no worker " + worker.text() + " is here");
  }
  for (const ModelId& model : command.models) {
    const auto has_it = [&](const SiteKey& key) { return key.first == model && names(command.workers, key.second); };
    if (is_known(has_it)) continue;
    return make_error(ErrorCode::not_found, "no worker that is meant and here has a model " + model.text());
  }
  if (raises(command.verb)) return sites_to_raise(command);
  std::vector<SiteKey> keys;
  for (const auto& [key, site] : sites_) {
    const bool is_above = std::max(site.state.residency, site.state.target) > target_of(command.verb);
    if (names(command.models, key.first) && names(command.workers, key.second) && is_above) keys.push_back(key);
  }
  return keys;
}

/// On every worker that is named; where none is, on the best one for each model that is nowhere yet, or, to fork
/// it, on one more.
std::vector<LifecycleCore::SiteKey> LifecycleCore::sites_to_raise(const Command& command) const {
  const Residency target = target_of(command.verb);
  const auto is_there = [&](const Site& site) {
    return std::min(site.state.residency, site.state.target) >= target;
  };
  std::vector<SiteKey> keys;
  std::map<ModelId, const Site*> best;
  std::set<ModelId> present;
  for (const auto& [key, site] : sites_) {
    const auto& [model, worker] = key;
    if (!names(command.models, model) || !names(command.workers, worker)) continue;
    if (is_there(site)) {
      present.insert(model);
    } else if (!command.workers.empty()) {
      keys.push_back(key);
    } else if (const Site*& chosen = best[model]; chosen == nullptr || room_rank(site) < room_rank(*chosen)) {
      chosen = &site;
    }
  }
  for (const auto& [model, site] : best) {
    if (command.verb == CommandVerb::fork || !present.contains(model)) keys.emplace_back(model, site->state.worker);
  }
  return keys;
}

Order LifecycleCore::order_for(const Command& command, const SiteKey& key, Instant now) const {
  Order order;
  order.target = target_of(command.verb);
  order.drain_for = command.drain_for;
  order.at_deadline = command.at_deadline;
  order.pin = command.pin && raises(command.verb);
  if (order.target == Residency::active) order.may_evict = evictable(key.second, key.first, now);
  if (order.target == Residency::active)
    order.sources = command.sources.empty() ? active_elsewhere(key) : command.sources;
  return order;
}

std::vector<ActorName> LifecycleCore::active_elsewhere(const SiteKey& key) const {
  std::vector<ActorName> sources;
  for (const auto& [other, site] : sites_of(key.first)) {
    if (other.second != key.second && site.state.residency == Residency::active) sources.push_back(other.second);
  }
  return sources;
}

void LifecycleCore::end_wish(std::uint64_t id, Outbox& out) {
  const auto found = wishes_.find(id);
  Wish& wish = found->second;
  CommandEnded ended;
  ended.command = wish.command;
  for (const OrderEnded& order : wish.ended) {
    if (order.code == ErrorCode::none || ended.code != ErrorCode::none) continue;
    ended.code = order.code;
    ended.why = order.why;
  }
  ended.orders = std::move(wish.ended);
  out.send(wish.gateway, std::move(ended));
  wishes_.erase(found);
}

}  // namespace sangam
