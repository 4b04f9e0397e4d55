// Models of a simulated worker: orders, moves and what is said of them.
#include <algorithm>
#include <chrono>

#include "sim/world/sim_worker.hpp"

namespace sangam::sim {
namespace {

constexpr Timer kMove{2};
constexpr Timer kTell{3};
constexpr Millis kTellEvery{500};
constexpr Bytes kPage{2 << 20};
const ActorName kScheduler("scheduler");
const ActorName kLifecycle("lifecycle");

Micros time_for(Bytes bytes, double bytes_per_second) {
  return Micros(std::int64_t(double(bytes.count()) / bytes_per_second * 1e6));
}

}  // namespace

void SimWorker::on(const ActorFound& found, Instant now, Outbox& out) {
  if (found.actor == kScheduler) say_all_ready(out);
  if (hears_states(found.actor)) {
    for (const auto& [id, holding] : holdings_) out.send(found.actor, state_of(holding));
    out.send(found.actor, memory());
  }
  if (std::count(options_.table_hearers.begin(), options_.table_hearers.end(), found.actor) > 0) {
    say_tables(found.actor, out);
  }
  if (told_at_ == Instant{} && !options_.telemetry_hearers.empty()) {
    told_at_ = now;
    out.set_timer(kTell, now + kTellEvery);
  }
}

void SimWorker::on(const Order& order, Instant now, Outbox& out) {
  const auto found = holdings_.find(order.model);
  if (found == holdings_.end()) {
    OrderEnded ended;
    ended.operation = order.operation;
    ended.worker = options_.name;
    ended.model = order.model;
    ended.code = ErrorCode::not_found;
    ended.why = "not a model of this worker";
    out.send(kLifecycle, std::move(ended));
    return;
  }
  Holding& holding = found->second;
  if (order.target == Residency::active) {
    raise(holding, order, now, out);
  } else {
    lower(holding, order, out);
  }
}

void SimWorker::raise(Holding& holding, const Order& order, Instant now, Outbox& out) {
  if (holding.target == Residency::active) {
    if (holding.residency != Residency::active) return holding.orders.push_back(order);
    if (holding.role != order.role) {
      holding.role = order.role;
      say_ready(holding, out);
    }
    return answer(order, holding, ErrorCode::none, "", out);
  }
  if (holding.residency == Residency::active) {  // It was about to leave.
    answer(holding, ErrorCode::cancelled, "another order came", out);
    holding.target = Residency::active;
    holding.role = order.role;
    say_state(holding, true, out);
    say_ready(holding, out);
    return answer(order, holding, ErrorCode::none, "", out);
  }
  std::vector<ModelId> evicted;
  if (!make_room(holding, order, out, evicted)) {
    return answer(order, holding, ErrorCode::exhausted, "no room", out);
  }
  const Bytes missing = state_of(holding).missing;
  holding.target = Residency::active;
  holding.role = order.role;
  holding.orders.push_back(order);
  const DeviceSpec& device = options_.device;
  const bool forks = !order.sources.empty();
  const double speed = forks                                     ? device.peer_bytes_per_second
                       : holding.residency == Residency::warm    ? device.host_bytes_per_second
                                                                 : device.storage_bytes_per_second;
  Phase phase{forks ? "fork" : "copy", device.activation_fixed + time_for(missing, speed), missing};
  // One link for all weights that come: a move waits for the one before.
  const Instant begins = moves_.empty() ? now : std::max(now, moves_.back().ends);
  moves_.push_back({&holding, phase, now, begins + phase.took});
  if (moves_.size() == 1) out.set_timer(kMove, moves_.front().ends);
  residency_changed(holding, out);
}

/// Only when it helps, and idle models only.
bool SimWorker::make_room(const Holding& holding, const Order& order, Outbox& out, std::vector<ModelId>& evicted) {
  const auto floor = Bytes(std::int64_t(double(options_.device.memory.count()) * options_.kv_floor_share));
  std::vector<const ModelSpec*> there = specs_on();
  there.push_back(holding.spec);
  const auto fits = [&] { return union_of(there) + kv_ + floor <= options_.device.usable(); };
  bool has_room = fits();
  for (const ModelId& model : order.may_evict) {
    if (has_room) break;
    const Holding& other = holdings_.at(model);
    const bool idle = other.residency == Residency::active && other.target == Residency::active && other.live == 0;
    if (!idle) continue;
    std::erase(there, other.spec);
    evicted.push_back(model);
    has_room = fits();
  }
  if (!has_room) return false;
  for (const ModelId& model : evicted) leave(holdings_.at(model), out);
  return true;
}

void SimWorker::lower(Holding& holding, const Order& order, Outbox& out) {
  if (holding.residency != Residency::active && holding.target == Residency::active) {
    answer(holding, ErrorCode::cancelled, "another order came", out);
    // Its time on the link stays taken: in it the others get what it had in common with them.
    std::erase_if(moves_, [&](const Move& move) { return move.holding == &holding; });
    holding.target = holding.residency;
    residency_changed(holding, out);
    return answer(order, holding, ErrorCode::none, "", out);
  }
  if (holding.residency != Residency::active) return answer(order, holding, ErrorCode::none, "", out);
  const bool was_leaving = holding.target != Residency::active;
  holding.orders.push_back(order);
  if (was_leaving) return;
  leave(holding, out);
}

/// No more runs from now on; gone with the last one.
void SimWorker::leave(Holding& holding, Outbox& out) {
  holding.target = Residency::warm;
  out.send(kScheduler, InstanceGone{options_.name, holding.spec->id, options_.incarnation, "it is put to sleep"});
  say_state(holding, true, out);
  drained(holding, out);
}

/// A model that leaves goes with its last run.
void SimWorker::drained(Holding& holding, Outbox& out) {
  if (holding.live > 0) return;
  if (holding.residency == Residency::active && holding.target != Residency::active) {
    holding.residency = holding.target;
    answer(holding, ErrorCode::none, "", out);
    residency_changed(holding, out);
    say_memory(out);
    return say_all_ready(out);
  }
  say_state(holding, false, out);
}

void SimWorker::move_done(Instant now, Outbox& out) {
  while (!moves_.empty() && moves_.front().ends <= now) {
    const Move move = moves_.front();
    moves_.erase(moves_.begin());
    move.holding->residency = Residency::active;
    telemetry_.moved += move.phase.moved;
    ++wake_ups_.count;
    wake_ups_.copied += move.phase.moved;
    wake_ups_.took += std::chrono::duration_cast<Micros>(now - move.ordered);
    answer(*move.holding, ErrorCode::none, "", out);
    say_state(*move.holding, true, out);
    say_memory(out);
    say_all_ready(out);
  }
  if (!moves_.empty()) out.set_timer(kMove, moves_.front().ends);
}

void SimWorker::answer(Holding& holding, ErrorCode code, const std::string& why, Outbox& out) {
  for (const Order& order : std::exchange(holding.orders, {})) answer(order, holding, code, why, out);
}

void SimWorker::answer(const Order& order, const Holding& holding, ErrorCode code, const std::string& why,
                       Outbox& out) const {
  OrderEnded ended;
  ended.operation = order.operation;
  ended.worker = options_.name;
  ended.model = holding.spec->id;
  ended.incarnation = options_.incarnation;
  ended.residency = holding.residency;
  ended.code = code;
  ended.why = why;
  out.send(kLifecycle, std::move(ended));
}

bool SimWorker::hears_states(const ActorName& actor) const {
  const auto& hearers = options_.state_hearers;
  return actor == kLifecycle || std::find(hearers.begin(), hearers.end(), actor) != hearers.end();
}

InstanceState SimWorker::state_of(const Holding& holding) const {
  InstanceState state;
  state.worker = options_.name;
  state.model = holding.spec->id;
  state.incarnation = options_.incarnation;
  state.residency = holding.residency;
  state.target = holding.target;
  state.live = holding.live;
  state.weights = holding.spec->weights;
  const Bytes others_have = has_sibling_on(holding) ? shared_of(*holding.spec) : Bytes(0);
  (is_on(holding) ? state.own : state.missing) = holding.spec->weights - others_have;
  return state;
}

void SimWorker::say_state(const Holding& holding, bool to_all, Outbox& out) const {
  out.send(kLifecycle, state_of(holding));
  if (!to_all) return;
  for (const ActorName& hearer : options_.state_hearers) out.send(hearer, state_of(holding));
}

void SimWorker::say_ready(const Holding& holding, Outbox& out) const {
  Bytes room = options_.device.usable() - weights_;
  InstanceReady ready;
  ready.worker = options_.name;
  ready.model = holding.spec->id;
  ready.incarnation = options_.incarnation;
  ready.running_max = options_.running_max;
  ready.kv_capacity = Tokens(room / holding.spec->kv_per_token);
  ready.prefill_tokens_per_second = 1e6 / (holding.spec->prefill(Tokens(512)) / 512.0);
  ready.role = holding.role;
  out.send(kScheduler, std::move(ready));
}

void SimWorker::say_all_ready(Outbox& out) const {
  for (const auto& [id, holding] : holdings_) {
    if (holding.residency == Residency::active && holding.target == Residency::active) say_ready(holding, out);
  }
}

WorkerMemory SimWorker::memory() const {
  WorkerMemory memory;
  memory.worker = options_.name;
  memory.pool = options_.device.usable();
  memory.weights = weights_;
  memory.kv = kv_;
  memory.free = std::max(free_bytes(), Bytes(0));
  return memory;
}

void SimWorker::say_memory(Outbox& out) const {
  out.send(kLifecycle, memory());
  for (const ActorName& hearer : options_.state_hearers) out.send(hearer, memory());
}

void SimWorker::say_telemetry(Instant now, Outbox& out) {
  settle(double(now.time_since_epoch().count()));
  Telemetry told = telemetry_;
  told.sequence = ++telemetry_.sequence;
  told.up = Micros(now.time_since_epoch().count());
  const double span = double((now - told_at_).count());
  told_at_ = now;
  told.compute = telemetry_.compute / span;
  told.bandwidth = telemetry_.bandwidth / span;
  telemetry_.compute = telemetry_.bandwidth = 0.0;
  told.prefill_ahead = Micros(std::int64_t(in_prefill() == nullptr ? 0.0 : std::max(prefill_left_, 0.0)));
  told.pages = Pages(options_.device.usable() / kPage);
  told.pages_used = Pages((weights_ + kv_) / kPage);
  told.transfers = std::int64_t(moves_.size());
  for (auto& [id, holding] : holdings_) {
    if (holding.residency != Residency::active) continue;
    holding.load.running = holding.decoding;
    holding.load.kv_used = Pages(holding.kv.count() / kPage.count());
    holding.load.waiting = holding.live - holding.decoding;
    holding.load.decode_time = Micros(std::int64_t(holding.decode_time));
    holding.load.decode_steps = std::uint64_t(holding.decode_steps);
    holding.load.context_tokens = std::uint64_t(holding.context_tokens);
    told.models.push_back(holding.load);
  }
  for (const ActorName& hearer : options_.telemetry_hearers) out.send(hearer, told);
  out.set_timer(kTell, now + kTellEvery);
}

/// What all fine-tunes of a base have in common is one segment, the rest of each another.
void SimWorker::say_tables(const ActorName& to, Outbox& out) const {
  for (const auto& [id, holding] : holdings_) {
    ModelTable table;
    table.model = id;
    table.devices = options_.devices;
    table.kv_per_token = holding.spec->kv_per_token;
    const Bytes shared = shared_of(*holding.spec);
    table.segments = {{std::hash<std::string>{}("own " + id.text()), holding.spec->weights - shared}};
    if (shared > Bytes(0)) table.segments.push_back({std::hash<std::string>{}("base " + holding.spec->base), shared});
    out.send(to, std::move(table));
  }
}

std::int64_t SimWorker::models_on() const {
  return std::count_if(holdings_.begin(), holdings_.end(), [](const auto& entry) { return is_on(entry.second); });
}

bool SimWorker::is_on(const Holding& holding) {
  return holding.residency == Residency::active || holding.target == Residency::active;
}

Bytes SimWorker::shared_of(const ModelSpec& spec) const {
  if (spec.base.empty()) return Bytes(0);  // A fine-tune of nothing that is known.
  return Bytes(std::int64_t(double(spec.weights.count()) * options_.shared_share));
}

/// What these models take together: what fine-tunes of one base share counts once.
Bytes SimWorker::union_of(std::vector<const ModelSpec*> specs) const {
  std::sort(specs.begin(), specs.end(), [](const auto* a, const auto* b) { return a->base < b->base; });
  Bytes bytes{0};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const bool has_base = i > 0 && specs[i - 1]->base == specs[i]->base;
    bytes += specs[i]->weights - (has_base ? shared_of(*specs[i]) : Bytes(0));
  }
  return bytes;
}

std::vector<const ModelSpec*> SimWorker::specs_on() const {
  std::vector<const ModelSpec*> specs;
  for (const auto& [id, holding] : holdings_) {
    if (is_on(holding)) specs.push_back(holding.spec);
  }
  return specs;
}

bool SimWorker::has_sibling_on(const Holding& holding) const {
  return std::any_of(holdings_.begin(), holdings_.end(), [&](const auto& entry) {
    return &entry.second != &holding && entry.second.spec->base == holding.spec->base && is_on(entry.second);
  });
}

/// A model came or went: siblings now miss or own something else, which the lifecycle ranks workers by.
void SimWorker::residency_changed(const Holding& holding, Outbox& out) {
  weights_ = union_of(specs_on());
  say_state(holding, true, out);
  if (options_.shared_share <= 0.0) return;
  for (const auto& [id, other] : holdings_) {
    if (&other != &holding && other.spec->base == holding.spec->base) say_state(other, false, out);
  }
}

}  // namespace sangam::sim
