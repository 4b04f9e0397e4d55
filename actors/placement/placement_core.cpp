// What the placement hears.
#include "actors/placement/placement_core.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace sangam {
namespace {

constexpr Timer kDecide{1};
constexpr Timer kConsolidate{2};

/// News that could make room come in swarms; a decision waits so long for the rest.
constexpr Millis kGather{100};
/// Fewer requests per second than this, one in a quarter of an hour, are none.
constexpr double kIdleRate = 1e-3;

/// A well mixed function of its argument (the finaliser of SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

PoolOptions with_policy(PoolOptions options, const PlacementPolicy& policy) {
  options.idle_leave = policy.idle_leave.value_or(options.idle_leave);
  return options;
}

}  // namespace

PlacementCore::PlacementCore(PlacementOptions options)
    : options_(std::move(options)), pool_(with_policy(options_.pools, options_.policy)), epoch_(options_.epoch) {
  if (options_.policy.dedicated) options_.models_max = 1;
  options_.interval = options_.policy.interval.value_or(options_.interval);
}

void PlacementCore::restore(const Plan& last, Instant now) {
  plan_ = last;
  epoch_ = std::max(epoch_, last.epoch);
  std::map<ModelId, std::uint32_t> numbers;
  for (const PlannedInstance& instance : last.instances) {
    ledger_[{instance.model, numbers[instance.model]++}].worker = instance.worker;
    pool_.restore(instance.model, now);
  }
}

void PlacementCore::on(const Forecast& forecast, Instant now, Outbox& out) {
  begin(now, out);
  for (auto& [model, known] : forecasts_) known.requests_per_second = 0.0;
  for (const ModelForecast& model : forecast.models) forecasts_[model.model] = model;
  if (see_traffic(now) && has_settled_) decide(out);
}

void PlacementCore::on(const ModelTable& table, Instant now, Outbox& out) {
  begin(now, out);
  if (weights_.set(table)) expect_room(now, out);
}

void PlacementCore::on(const InstanceState& state, Instant now, Outbox& out) {
  begin(now, out);
  KnownWorker& host = hosts_[state.worker];
  if (state.incarnation < host.incarnation) return;
  if (state.incarnation > host.incarnation) {
    host.incarnation = state.incarnation;
    host.models.clear();
    host.active.clear();
    host.catalogue = 0;
  }
  if (host.models.insert(state.model).second) {
    host.catalogue ^= mixed(std::hash<ModelId>{}(state.model));
    expect_room(now, out);
  }
  if (state.residency == Residency::active && state.target == Residency::active) {
    host.active.insert(state.model);
  } else {
    host.active.erase(state.model);
  }
}

void PlacementCore::on(const WorkerMemory& memory, Instant now, Outbox& out) {
  begin(now, out);
  KnownWorker& host = hosts_[memory.worker];
  if (host.pool == memory.pool) return;
  host.pool = memory.pool;
  note_pools();
  expect_room(now, out);
}

void PlacementCore::on(const Telemetry& telemetry, Instant now, Outbox& out) {
  begin(now, out);
  KnownWorker& host = hosts_[telemetry.worker];
  if (host.devices == telemetry.devices) return;
  host.devices = telemetry.devices;
  note_pools();
  expect_room(now, out);
}

void PlacementCore::on(const Plan& plan, Instant now, Outbox& out) {
  begin(now, out);
  if (plan.by == options_.self) return;
  Plan& known = elastic_[plan.by];
  if (plan.epoch >= known.epoch) known = plan;
}

void PlacementCore::on(const ActorFound& found, Instant, Outbox& out) {
  const bool hears_plans = std::find(options_.tell.begin(), options_.tell.end(), found.actor) != options_.tell.end();
  if (hears_plans && has_settled_) out.send(found.actor, plan_);
}

void PlacementCore::on(const ActorLost& lost, Instant, Outbox& out) {
  elastic_.erase(lost.actor);
  const auto host = hosts_.find(lost.actor);
  if (host == hosts_.end()) return;
  hosts_.erase(host);
  note_pools();
  const std::size_t lost_instances =
      std::erase_if(ledger_, [&](const auto& entry) { return entry.second.worker == lost.actor; });
  if (lost_instances == 0 || !has_settled_) return;
  out.log(LogLevel::warning, "placement.worker_lost",
          {{"worker", lost.actor.text()}, {"instances", std::to_string(lost_instances)}, {"why", lost.why}});
  has_lost_ = true;
  decide(out);
}

void PlacementCore::wake(Timer timer, Instant now, Outbox& out) {
  if (timer == kDecide && has_settled_) {
    expects_room_ = false;
    return decide(out);
  }
  has_settled_ = true;
  consolidate(now, out);
  out.set_timer(kConsolidate, now + options_.interval);
}

/// The first event: from now on the workers have time to say what they have.
void PlacementCore::begin(Instant now, Outbox& out) {
  if (std::exchange(has_begun_, true)) return;
  out.set_timer(kDecide, now + options_.settle);
}

/// A worker, a model on it or a table came: who found no room may find it now.
void PlacementCore::expect_room(Instant now, Outbox& out) {
  if (!has_settled_ || std::exchange(expects_room_, true)) return;
  out.set_timer(kDecide, now + kGather);
}

bool PlacementCore::see_traffic(Instant now) {
  bool has_changed = false;
  for (const auto& [model, forecast] : forecasts_) {
    if (options_.policy.dedicated) {
      has_changed |= !ledger_.contains({model, 0}) && !without_room_.contains(model);
    } else {
      has_changed |= pool_.see(model, traffic_of(forecast), now);
    }
  }
  return has_changed;
}

ModelTraffic PlacementCore::traffic_of(const ModelForecast& forecast) {
  ModelTraffic traffic;
  const Promised needs = reservation_for(forecast);
  traffic.size = std::max(needs.compute, needs.bandwidth);
  if (const WeightParts* parts = weights_.parts(forecast.model); parts != nullptr && needs.kv > Bytes(0)) {
    const auto pool = pools_.find(parts->devices);
    const Bytes left = (pool == pools_.end() ? Bytes(0) : pool->second) - parts->all;
    traffic.size = std::max(traffic.size, left > Bytes(0) ? double(needs.kv.count()) / double(left.count()) : 1.0);
  }
  traffic.volatility = forecast.volatility;
  if (!forecast.mixed_attainment.empty()) traffic.attainment = forecast.mixed_attainment.front();
  traffic.is_idle = forecast.requests_per_second < kIdleRate;
  return traffic;
}

/// The mean and a margin; a policy with a KV budget reserves that and nothing else.
Promised PlacementCore::reservation_for(const ModelForecast& forecast) const {
  Promised reserved;
  reserved.rate = forecast.input_tokens_per_second;
  if (options_.policy.kv_budget) {
    reserved.kv = *options_.policy.kv_budget;
    return reserved;
  }
  const auto with_margin = [&](double mean, double deviation) {
    return std::max(0.0, mean + options_.deviations * deviation);
  };
  reserved.kv = Bytes(std::int64_t(with_margin(double(forecast.kv.count()), double(forecast.kv_deviation.count()))));
  reserved.compute = with_margin(forecast.compute, forecast.compute_deviation);
  reserved.bandwidth = with_margin(forecast.bandwidth, forecast.bandwidth_deviation);
  return reserved;
}

std::uint32_t PlacementCore::instances_wanted(const ModelId& model) const {
  const auto named = options_.instances.find(model);
  return named == options_.instances.end() ? 1 : std::max(named->second, 1U);
}

/// A KV budget is each instance's.
Promised PlacementCore::reservation_of_instance(const ModelForecast& forecast) const {
  Promised share = reservation_for(forecast);
  const std::uint32_t count = instances_wanted(forecast.model);
  if (!options_.policy.kv_budget) share.kv = Bytes(share.kv.count() / count);
  share.compute /= count;
  share.bandwidth /= count;
  share.rate /= count;
  return share;
}

void PlacementCore::note_pools() {
  pools_.clear();
  for (const auto& [name, host] : hosts_) {
    if (host.devices <= 0 || host.pool <= Bytes(0)) continue;
    Bytes& largest = pools_[host.devices];
    largest = std::max(largest, host.pool);
  }
}

bool PlacementCore::is_member(const ModelId& model) const {
  return options_.policy.dedicated ? forecasts_.contains(model) : pool_.holds(model);
}

}  // namespace sangam
