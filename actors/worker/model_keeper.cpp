// How orders become moves, and who is told.
#include "actors/worker/model_keeper.hpp"

#include <algorithm>
#include <utility>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::size_t kAnsweredMax = 1024;
const ActorName kLifecycle("lifecycle");

}  // namespace

ModelKeeper::ModelKeeper(const WorkerOptions& options, Runner& runner, LiveRuns& runs)
    : options_(options), runner_(runner), runs_(runs), role_(options.role) {
  for (const auto& [model, folder] : options_.models) holdings_[model];
}

/// What lies there first: it serves at once.
void ModelKeeper::start(Outbox& out) {
  for (const ModelId& model : runner_.adopted()) begin_job(model, Job{}, Instant{}, out);
  if (!options_.preload) return;
  for (const auto& [model, folder] : options_.models) {
    if (!holdings_.at(model).job) begin_job(model, Job{}, Instant{}, out);
  }
}

void ModelKeeper::on(const Order& order, Instant now, Outbox& out) {
  const OperationKey key{order.epoch, order.operation};
  if (const auto former = answered_.find(key); former != answered_.end()) {
    out.send(kLifecycle, former->second);
    return;
  }
  if (auto wrong = objection(order, now); !wrong) return answer(key, ended(order.model, wrong), out);
  epoch_ = order.epoch;
  if (order.target == Residency::active) take_role(order.role, out);
  Holding& holding = holdings_.at(order.model);
  const bool pinned = order.pin || (holding.pinned && order.target >= holding.residency);
  if (std::exchange(holding.pinned, pinned) != pinned) tell_state_to_all(order.model, out);
  if (holding.job && holding.job->target == order.target) {
    auto& joined = holding.job->operations;
    if (std::find(joined.begin(), joined.end(), key) == joined.end()) joined.push_back(key);
    return;
  }
  if (holding.job) drop_job(order.model, out);
  if (holding.residency == order.target) return answer(key, ended(order.model, {}), out);
  Job job;
  job.target = order.target;
  job.operations = {key};
  job.sources = order.sources;
  job.may_evict = order.may_evict;
  job.at_deadline = order.at_deadline;
  job.drain_until = now + order.drain_for;
  begin_job(order.model, std::move(job), now, out);
}

/// The worker has one, that of the last order: whatever else is here leaves soon. A worker that cannot hand runs over
/// does everything.
void ModelKeeper::take_role(WorkerRole role, Outbox& out) {
  if (options_.role != WorkerRole::mixed || options_.holder.empty()) return;
  if (std::exchange(role_, role) == role) return;
  for (const auto& [model, holding] : holdings_) {
    if (is_active(model)) announce_to_all(model, out);
  }
}

/// Why an order is not even begun.
Result<void> ModelKeeper::objection(const Order& order, Instant now) const {
  const std::string here = options_.name.text() + ": ";
  if (order.incarnation != options_.incarnation) {
    return make_error(ErrorCode::unavailable, here + "the order is for incarnation " +
                                                  std::to_string(std::uint64_t(order.incarnation)) +
                                                  ", this is " + std::to_string(std::uint64_t(options_.incarnation)));
  }
  if (order.epoch < epoch_) {
    return make_error(ErrorCode::unavailable, here + "the order is of epoch " + std::to_string(order.epoch) +
                                                  ", a lifecycle of epoch " + std::to_string(epoch_) + " is in charge");
  }
  const auto holding = holdings_.find(order.model);
  if (holding == holdings_.end())
    return make_error(ErrorCode::not_found, here + "model " + order.model.text() + " is not one of this worker's");
  const bool leaves = holding->second.residency == Residency::active && order.target != Residency::active;
  const std::int64_t live = runs_.live(order.model);
  if (!leaves) return {};
  if (live > 0 && order.drain_for <= Millis(0) && order.at_deadline == AtDeadline::stay) {
    return make_error(ErrorCode::unavailable, here + "model " + order.model.text() + " has live requests=" +
                                                  std::to_string(live) + "; give them time to end, or move them");
  }
  if (order.idle_at_least <= Millis(0)) return {};
  if (live > 0 || (holding->second.last_token && now < *holding->second.last_token + order.idle_at_least)) {
    return make_error(ErrorCode::unavailable, here + "model " + order.model.text() + " is not idle for " +
                                                  std::to_string(order.idle_at_least.count()) + " ms");
  }
  return {};
}

void ModelKeeper::begin_job(const ModelId& model, Job job, Instant now, Outbox& out) {
  Holding& holding = holdings_.at(model);
  const bool leaves = holding.residency == Residency::active && job.target != Residency::active;
  const bool waits = leaves && runs_.live(model) > 0;
  holding.job = std::move(job);
  if (!waits) queue_move(model);
  if (leaves) announce_to_all(model, out);
  tell_state_to_all(model, out);
  if (!waits) return;
  // Nothing of it is begun any more; now is the time for what lives to end.
  if (now >= *holding.job->drain_until) return wake(now, out);
  out.set_timer(kDrain, *holding.job->drain_until);
}

void ModelKeeper::queue_move(const ModelId& model) {
  holdings_.at(model).job->drain_until.reset();
  moves_.push_back(model);
}

/// Another order has taken its place.
void ModelKeeper::drop_job(const ModelId& model, Outbox& out) {
  Holding& holding = holdings_.at(model);
  if (holding.job->begun) runner_.abandon();
  std::erase(moves_, model);
  const Job job = std::move(*holding.job);
  holding.job.reset();
  const auto replaced = make_error(ErrorCode::cancelled, options_.name.text() + ": a later order has replaced it");
  for (const OperationKey& key : job.operations) answer(key, ended(model, Result<void>(replaced)), out);
  if (holding.residency == Residency::active) announce_to_all(model, out);
}

void ModelKeeper::wake(Instant now, Outbox& out) {
  std::optional<Instant> next;
  for (auto& [model, holding] : holdings_) {
    if (!holding.job || !holding.job->drain_until) continue;
    if (now < *holding.job->drain_until) {
      next = std::min(next.value_or(Instant::max()), *holding.job->drain_until);
      continue;
    }
    const AtDeadline how = holding.job->at_deadline;
    if (how != AtDeadline::stay) {
      runs_.end_all(model, how, out);  // The last one's end makes the move ready.
      continue;
    }
    const std::string live = std::to_string(runs_.live(model));
    finish(model, make_error(ErrorCode::unavailable, options_.name.text() + ": model " + model.text() +
                                                         " still has live requests=" + live +
                                                         "; allow more time, or let them move"),
           out);
  }
  if (next) out.set_timer(kDrain, *next);
}

void ModelKeeper::run_began(const ModelId& model, Outbox& out) {
  if (runs_.live(model) == 1 && planners_.contains(kLifecycle)) tell_state(model, kLifecycle, out);
}

void ModelKeeper::run_produced(const ModelId& model, Instant now) {
  if (const auto holding = holdings_.find(model); holding != holdings_.end()) holding->second.last_token = now;
}

void ModelKeeper::run_ended(const ModelId& model, Outbox& out) {
  const auto holding = holdings_.find(model);
  if (holding == holdings_.end() || runs_.live(model) > 0) return;
  if (holding->second.job && holding->second.job->drain_until) queue_move(model);
  if (planners_.contains(kLifecycle)) tell_state(model, kLifecycle, out);
}

Result<void> ModelKeeper::admission(const ModelId& model) const {
  const std::string here = options_.name.text() + ": model " + model.text();
  const auto found = holdings_.find(model);
  if (found == holdings_.end()) return make_error(ErrorCode::not_found, here + " is not one of this worker's");
  const Holding& holding = found->second;
  if (is_active(model)) return {};
  if (holding.residency == Residency::active) return make_error(ErrorCode::unavailable, here + " is leaving");
  if (holding.job) return make_error(ErrorCode::unavailable, here + " is still being loaded; try again");
  if (!holding.failure) return make_error(ErrorCode::unavailable, here + " is asleep");
  return make_error(ErrorCode::unavailable, here + " could not be loaded: " + holding.failure->context);
}

bool ModelKeeper::is_active(const ModelId& model) const {
  const auto found = holdings_.find(model);
  return found != holdings_.end() && found->second.residency == Residency::active &&
         (!found->second.job || found->second.job->target == Residency::active);
}

void ModelKeeper::step(bool others_wait, Outbox& out) {
  const ModelId model = moves_.front();
  Job& job = *holdings_.at(model).job;
  Result<bool> done = false;
  if (job.begun) {
    done = runner_.advance(others_wait);
  } else if (const auto begun = runner_.begin({model, job.target, job.sources}); !begun) {
    done = begun.error();
  }
  job.begun = done.has_value();
  if (!done && done.error().code == ErrorCode::exhausted && make_room(model, out)) return;
  note_demoted(out);
  if (!done || *done) finish(model, done ? Result<void>() : Result<void>(done.error()), out);
}

/// Host memory was short: these have no copy there any more, or get none.
void ModelKeeper::note_demoted(Outbox& out) {
  for (const ModelId& model : runner_.take_demoted()) {
    Holding& holding = holdings_.at(model);
    if (holding.residency == Residency::active) {
      holding.job->target = Residency::cold;
      continue;
    }
    holding.residency = Residency::cold;
    tell_state_to_all(model, out);
  }
}

/// As few of the models that may go as will do, and only if that helps.
bool ModelKeeper::make_room(const ModelId& model, Outbox& out) {
  Job& job = *holdings_.at(model).job;
  if (!job.evicted.empty()) return false;
  std::vector<ModelId> leaving;
  for (const ModelId& other : job.may_evict) {
    const auto holding = holdings_.find(other);
    const bool can_go = holding != holdings_.end() && holding->second.residency == Residency::active &&
                        !holding->second.job && runs_.live(other) == 0 && other != model;
    if (!can_go) continue;
    leaving.push_back(other);
    if (!runner_.would_fit(model, leaving)) continue;
    job.evicted = leaving;
    moves_.insert(moves_.begin(), leaving.begin(), leaving.end());
    for (const ModelId& evicted : leaving) {
      Job sleep;
      sleep.target = Residency::warm;
      holdings_.at(evicted).job = std::move(sleep);
      announce_to_all(evicted, out);
      tell_state_to_all(evicted, out);
    }
    return true;
  }
  return false;
}

void ModelKeeper::finish(const ModelId& model, const Result<void>& result, Outbox& out) {
  Holding& holding = holdings_.at(model);
  Job job = std::move(*holding.job);
  holding.job.reset();
  std::erase(moves_, model);
  const bool rises = job.target > holding.residency;
  const bool was_active = holding.residency == Residency::active;
  const bool was_read = holding.residency > Residency::cold;
  if (result) holding.residency = job.target;
  if (result && rises && !was_read) tell_table_to_all(model, out);
  if (result || rises) holding.failure = result ? std::nullopt : std::optional<Error>(result.error());
  OrderEnded end = ended(model, result);
  if (result) end.phases = runner_.phases();
  for (const Phase& phase : end.phases) moved_ += phase.moved;
  end.evicted = job.evicted;
  out.log(result ? LogLevel::info : LogLevel::warning, result ? "worker.moved" : "worker.move_failed",
          {{"model", model.text()},
           {"residency", std::string(name_of(holding.residency))},
           {"why", end.why}});
  for (const OperationKey& key : job.operations) answer(key, end, out);
  const bool is_active = holding.residency == Residency::active;
  if (is_active && !was_active) {
    holding.last_token.reset();
    for (const std::string& warning : runner_.instance(model).warnings)
      out.log(LogLevel::warning, "worker.checkpoint_odd", {{"model", model.text()}, {"what", warning}});
  }
  if (is_active || rises) announce_to_all(model, out);
  tell_state_to_all(model, out);
  tell_memory(out);
  if (!moves_.empty() || !result) return;
  // Each change leaves other room to the others; the last one tells of all.
  for (const auto& [other, at] : holdings_) {
    if (other == model) continue;
    if (this->is_active(other)) announce_to_all(other, out);
    tell_state_to_all(other, out);
  }
}

OrderEnded ModelKeeper::ended(const ModelId& model, const Result<void>& result) const {
  OrderEnded end;
  end.worker = options_.name;
  end.model = model;
  end.incarnation = options_.incarnation;
  if (const auto holding = holdings_.find(model); holding != holdings_.end())
    end.residency = holding->second.residency;
  if (!result) {
    end.code = result.error().code;
    end.why = result.error().context;
  }
  return end;
}

void ModelKeeper::answer(const OperationKey& key, OrderEnded end, Outbox& out) {
  end.operation = key.operation;
  out.send(kLifecycle, end);
  answered_[key] = std::move(end);
  answered_order_.push_back(key);
  if (answered_order_.size() <= kAnsweredMax) return;
  answered_.erase(answered_order_.front());
  answered_order_.pop_front();
}

}  // namespace sangam
