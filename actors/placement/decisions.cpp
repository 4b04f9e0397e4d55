// What follows from what the placement knows: who comes, who goes, what is packed anew, and the plan.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "actors/placement/consolidation.hpp"
#include "actors/placement/moves.hpp"
#include "actors/placement/placement_core.hpp"
#include "actors/placement/repair.hpp"

namespace sangam {
namespace {

/// A model that needs more workers than this has a forecast that is not to be believed.
constexpr std::uint32_t kInstancesMax = 64;

double largest_need(const PackingProblem& problem, ItemIndex item) {
  const Item& it = problem.items[item];
  return std::max({it.own[0] + it.weights, it.own[1], it.own[2]});
}

}  // namespace

void PlacementCore::decide(Outbox& out) {
  const auto changed = changes();
  const bool has_lost = std::exchange(has_lost_, false);
  if (changed.empty() && !has_lost) return;
  for (const auto& [devices, change] : changed) settle_class(devices, change, false, out);
  say_plan(out);
}

void PlacementCore::consolidate(Instant now, Outbox& out) {
  for (const auto& [key, placed] : ledger_) {
    if (!forecasts_.contains(key.model)) pool_.see(key.model, ModelTraffic{0.0, 1.0, true}, now);
  }
  forget_the_unknown();
  renew_reservations();
  auto changed = changes();
  bool knows_demand = true;  // After a restart, until the oracle has spoken of every model in the plan.
  for (const auto& [key, placed] : ledger_) {
    changed.try_emplace(weights_.parts(key.model)->devices);
    knows_demand &= forecasts_.contains(key.model) || placed.reserved != Promised{};
  }
  for (const auto& [devices, change] : changed) settle_class(devices, change, knows_demand, out);
  say_plan(out);
}

/// Takes what is in the pool no longer out of the ledger, and lists what is and has no place.
std::map<std::int64_t, PlacementCore::Changes> PlacementCore::changes() {
  std::map<std::int64_t, Changes> changed;
  std::erase_if(ledger_, [&](const auto& entry) {
    const auto& [key, placed] = entry;
    if (is_member(key.model)) return false;
    if (const WeightParts* parts = weights_.parts(key.model)) changed[parts->devices].damaged.insert(placed.worker);
    return true;
  });
  for (const auto& [model, forecast] : forecasts_) {
    const WeightParts* parts = weights_.parts(model);
    if (parts == nullptr || !is_member(model) || !pools_.contains(parts->devices)) continue;
    for (Candidate& candidate : instances_of(forecast)) {
      changed[parts->devices].arrivals.push_back(std::move(candidate));
    }
  }
  return changed;
}

/// Those that have no place: as many as the options say, or as share the demand where models have workers of their own.
std::vector<Candidate> PlacementCore::instances_of(const ModelForecast& forecast) {
  std::vector<Candidate> instances;
  Promised share = reservation_of_instance(forecast);
  std::uint32_t count = instances_wanted(forecast.model);
  if (options_.policy.dedicated) {
    if (ledger_.contains({forecast.model, 0})) return instances;
    share = reservation_for(forecast);
    const WeightParts& parts = *weights_.parts(forecast.model);
    const auto left = double((pools_.at(parts.devices) - parts.all).count());
    const double kv = left > 0.0 ? double(share.kv.count()) / left : 1.0;
    const double workers = std::ceil(std::max({share.compute, share.bandwidth, kv, 1.0}) - kRounding);
    count = std::uint32_t(std::min(workers, double(kInstancesMax)));
    share.kv = Bytes(share.kv.count() / count);
    share.compute /= count;
    share.bandwidth /= count;
    share.rate /= count;
  }
  for (std::uint32_t number = 0; number < count; ++number) {
    if (ledger_.contains({forecast.model, number})) continue;
    instances.push_back({{forecast.model, number}, {ActorName(), share}});
  }
  return instances;
}

/// After a restart the last plan may name workers and models that are not there any more.
void PlacementCore::forget_the_unknown() {
  std::erase_if(ledger_, [&](const auto& entry) {
    const WeightParts* parts = weights_.parts(entry.first.model);
    const auto host = hosts_.find(entry.second.worker);
    if (parts == nullptr || host == hosts_.end()) return true;
    return host->second.devices != parts->devices || host->second.pool <= Bytes(0);
  });
}

/// Dedicated workers are reserved once; only a restart makes them forget.
void PlacementCore::renew_reservations() {
  for (auto& [key, placed] : ledger_) {
    const auto forecast = forecasts_.find(key.model);
    if (forecast == forecasts_.end()) continue;
    if (options_.policy.dedicated && placed.reserved != Promised{}) continue;
    placed.reserved = options_.policy.dedicated ? reservation_for(forecast->second) : reservation_of_instance(forecast->second);
    if (!options_.policy.dedicated) continue;
    placed.reserved.kv = Bytes(0);
    placed.reserved.compute = std::min(placed.reserved.compute, 1.0);
    placed.reserved.bandwidth = std::min(placed.reserved.bandwidth, 1.0);
  }
}

std::vector<Candidate> PlacementCore::placed_in(std::int64_t devices) {
  std::vector<Candidate> candidates;
  for (const auto& [key, placed] : ledger_) {
    const WeightParts* parts = weights_.parts(key.model);
    if (parts != nullptr && parts->devices == devices) candidates.push_back({key, placed});
  }
  return candidates;
}

std::map<ActorName, std::size_t> PlacementCore::elastic_workers() const {
  std::map<ActorName, std::size_t> workers;
  for (const auto& [planner, plan] : elastic_) {
    for (const ActorName& worker : plan.workers) workers.try_emplace(worker, 0);
    for (const PlannedInstance& instance : plan.instances) ++workers[instance.worker];
  }
  return workers;
}

void PlacementCore::settle_class(std::int64_t devices, const Changes& changes, bool packs, Outbox& out) {
  std::vector<Candidate> candidates = placed_in(devices);
  const std::size_t first_arrival = candidates.size();
  candidates.insert(candidates.end(), changes.arrivals.begin(), changes.arrivals.end());
  Board board = make_board(hosts_, devices, candidates, weights_, elastic_workers());
  board.problem.models_max = options_.models_max;
  Bins bins(board.problem, board.placed);
  for (BinIndex b = 0; b < board.workers.size(); ++b) relieve(bins, b);
  insert_arrivals(bins, first_arrival);
  for (BinIndex b = 0; b < board.workers.size() && options_.policy.repairs; ++b) {
    if (changes.damaged.contains(board.workers[b])) repair(bins, b, options_.damage_max);
  }
  std::optional<Packing> anew;
  if (packs) {
    const ConsolidationTerms terms{options_.pools_per_worker_saved, options_.search_effort,
                                   options_.exact_matching_max};
    anew = consolidated(bins, options_.policy, terms);
  }
  write_back(board, anew ? *anew : bins.packing(), candidates);
  for (const Candidate& candidate : candidates) note_without_room(candidate.key, out);
}

/// The largest first.
void PlacementCore::insert_arrivals(Bins& bins, std::size_t first) const {
  const PackingProblem& problem = bins.problem();
  std::vector<ItemIndex> order;
  for (std::size_t i = first; i < problem.items.size(); ++i) order.push_back(ItemIndex(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](ItemIndex a, ItemIndex b) { return largest_need(problem, a) > largest_need(problem, b); });
  for (const ItemIndex item : order) {
    std::optional<BinIndex> bin = options_.policy.choose(bins, item);
    if (!bin) bin = bins.unused_for(item);
    if (bin) bins.put(*bin, item);
  }
}

void PlacementCore::write_back(const Board& board, const Packing& packing, const std::vector<Candidate>& candidates) {
  for (const InstanceKey& key : board.keys) ledger_.erase(key);
  for (BinIndex b = 0; b < packing.size(); ++b) {
    for (const ItemIndex i : packing[b]) ledger_[board.keys[i]] = {board.workers[b], candidates[i].placed.reserved};
  }
}

/// Logs once that a member finds no room, not for one of its instances.
void PlacementCore::note_without_room(const InstanceKey& key, Outbox& out) {
  const auto first = ledger_.lower_bound({key.model, 0});
  if (first != ledger_.end() && first->first.model == key.model) {
    without_room_.erase(key.model);
  } else if (without_room_.insert(key.model).second) {
    out.log(LogLevel::warning, "placement.no_room", {{"model", key.model.text()}});
  }
}

void PlacementCore::say_plan(Outbox& out) {
  Plan plan;
  plan.by = options_.self;
  plan.epoch = ++epoch_;
  std::set<std::int64_t> classes;
  for (const auto& [key, placed] : ledger_) classes.insert(weights_.parts(key.model)->devices);
  for (const std::int64_t devices : classes) add_instances(devices, plan);
  std::set<ActorName> workers;
  std::set<ModelId> models;
  for (const PlannedInstance& instance : plan.instances) {
    workers.insert(instance.worker);
    models.insert(instance.model);
  }
  plan.models.assign(models.begin(), models.end());
  plan.workers.assign(workers.begin(), workers.end());
  std::sort(plan.instances.begin(), plan.instances.end(), [](const PlannedInstance& a, const PlannedInstance& b) {
    return std::tie(a.step, a.worker, a.model) < std::tie(b.step, b.worker, b.model);
  });
  const auto moves = std::count_if(plan.instances.begin(), plan.instances.end(),
                                   [](const PlannedInstance& instance) { return instance.step > 0; });
  out.log(LogLevel::info, "placement.planned",
          {{"epoch", std::to_string(plan.epoch)},
           {"models", std::to_string(plan.models.size())},
           {"workers", std::to_string(plan.workers.size())},
           {"moves", std::to_string(moves)}});
  plan_ = std::move(plan);
  for (const ActorName& actor : options_.tell) out.send(actor, plan_);
}

void PlacementCore::add_instances(std::int64_t devices, Plan& plan) {
  Board board = make_board(hosts_, devices, placed_in(devices), weights_, elastic_workers());
  board.problem.models_max = options_.models_max;
  const Steps steps = steps_between(board.problem, present_on(board, hosts_), board.placed);
  std::map<ModelId, std::vector<std::pair<std::size_t, ActorName>>> sources;
  for (const auto& [name, host] : hosts_) {
    for (const ModelId& model : host.active) sources[model].emplace_back(host.active.size(), name);
  }
  for (auto& [model, workers] : sources) std::sort(workers.begin(), workers.end());
  for (BinIndex b = 0; b < board.workers.size(); ++b) {
    for (std::size_t p = 0; p < board.placed[b].size(); ++p) {
      PlannedInstance& instance = plan.instances.emplace_back();
      instance.model = board.keys[board.placed[b][p]].model;
      instance.worker = board.workers[b];
      instance.step = steps[b][p];
      const auto known = sources.find(instance.model);
      if (instance.step == 0 || known == sources.end()) continue;
      for (const auto& [active, worker] : known->second) instance.sources.push_back(worker);
    }
  }
}

}  // namespace sangam
