// What the oracle hears, how letters become differences, and the forecast of each tick.
#include "actors/oracle/oracle_core.hpp"

#include <algorithm>
#include <utility>

namespace sangam {
namespace {

constexpr Timer kTick{1};

double seconds(Micros time) { return std::chrono::duration<double>(time).count(); }

/// Arithmetic of one model's work, to divide what a worker's telemetry says of all its models together.
struct Work {
  double flop = 0.0;
  double read = 0.0;
};

Work work_of(const LoadDelta& delta, const ModelPrior& model) {
  const double tokens = delta.prefill_tokens + delta.output_tokens;
  return {tokens * std::max(1.0, model.flop_per_token),
          delta.decode_steps * double(model.weights.count()) + delta.context_tokens * double(model.kv_per_token.count()) +
              delta.prefill_tokens};
}

const ModelLoad* load_of(const Telemetry& letter, const ModelId& model) {
  const auto found = std::find_if(letter.models.begin(), letter.models.end(),
                                  [&](const ModelLoad& load) { return load.model == model; });
  return found == letter.models.end() ? nullptr : &*found;
}

}  // namespace

OracleCore::OracleCore(OracleOptions options) : options_(std::move(options)) {}

void OracleCore::start(Instant now, Outbox& out) { out.set_timer(kTick, now + options_.every); }

ModelWatch* OracleCore::watch(const ModelId& model, Outbox& out) {
  const auto found = models_.find(model);
  if (found != models_.end()) return &found->second;
  if (models_.size() < options_.models_max) return &models_.try_emplace(model, model, options_, models_.size()).first->second;
  if (!std::exchange(full_, true)) {
    out.log(LogLevel::warning, "oracle.model_ignored",
            {{"model", model.text()}, {"models_max", std::to_string(options_.models_max)}});
  }
  return nullptr;
}

void OracleCore::on(const QueueStatus& status, Instant, Outbox& out) {
  if (ModelWatch* model = watch(status.model, out)) model->on(status);
}

void OracleCore::on(const ModelTable& table, Instant, Outbox& out) {
  if (ModelWatch* model = watch(table.model, out)) model->on(table);
}

void OracleCore::on(const Served& served, Instant now, Outbox&) {
  for (const ServedRequest& request : served.requests) {
    // A model that no queue and no worker has named is a client's invention.
    const auto found = models_.find(request.model);
    if (found != models_.end()) found->second.on(request, now);
  }
}

void OracleCore::on(const Telemetry& telemetry, Instant now, Outbox& out) {
  const auto [entry, is_new] = workers_.try_emplace(telemetry.worker);
  Worker& worker = entry->second;
  const Telemetry& last = worker.letter;
  if (!is_new && telemetry.incarnation < last.incarnation) return;
  const bool goes_on = !is_new && telemetry.incarnation == last.incarnation;
  if (goes_on && telemetry.sequence <= last.sequence) return;
  for (const ModelLoad& load : telemetry.models) (void)watch(load.model, out);
  worker.heard = now;
  if (goes_on && telemetry.up > last.up) {
    note_delta(worker, telemetry);
  } else {
    worker.others.clear();
  }
  worker.letter = telemetry;
}

void OracleCore::note_delta(Worker& worker, const Telemetry& next) {
  std::vector<std::pair<ModelWatch*, LoadDelta>> deltas;
  Work all;
  double used = 0.0;
  for (const ModelLoad& load : next.models) {
    const ModelLoad* before = load_of(worker.letter, load.model);
    const auto found = models_.find(load.model);
    // A model that left and came back may count anew.
    if (before == nullptr || found == models_.end() || load.output_tokens < before->output_tokens ||
        load.prefill_tokens < before->prefill_tokens) {
      continue;
    }
    LoadDelta delta;
    delta.seconds = seconds(next.up - worker.letter.up);
    delta.kv_bytes = double(load.kv_used.count()) * double(options_.device.page.count());
    delta.prefill_tokens = double(load.prefill_tokens - before->prefill_tokens);
    delta.output_tokens = double(load.output_tokens - before->output_tokens);
    delta.decode_steps = double(load.decode_steps - before->decode_steps);
    delta.context_tokens = double(load.context_tokens - before->context_tokens);
    delta.busy = seconds(load.prefill_time - before->prefill_time + load.decode_time - before->decode_time);
    const Work work = work_of(delta, found->second.prior());
    all.flop += work.flop;
    all.read += work.read;
    used += delta.busy;
    deltas.emplace_back(&found->second, delta);
  }
  worker.others.clear();
  const double steps = double(next.steps) - double(worker.letter.steps);
  for (auto& [model, delta] : deltas) {
    // A step is of one model; those without a decode are not told apart, so they go by time.
    delta.steps = used > 0.0 ? steps * delta.busy / used : 0.0;
    const Work work = work_of(delta, model->prior());
    delta.compute = all.flop > 0.0 ? next.compute * work.flop / all.flop : 0.0;
    delta.bandwidth = all.read > 0.0 ? next.bandwidth * work.read / all.read : 0.0;
    delta.others = std::clamp((used - delta.busy) / delta.seconds, 0.0, 1.0);
    worker.others[model->forecast().model] = delta.others;
    model->add(next.worker, delta);
  }
}

void OracleCore::on(const ActorFound& found, Instant, Outbox&) { forget_queue(found.actor); }

void OracleCore::on(const ActorLost& lost, Instant, Outbox&) {
  workers_.erase(lost.actor);
  forget_queue(lost.actor);
}

void OracleCore::forget_queue(const ActorName& actor) {
  for (auto& [model, watch] : models_) {
    if (queue_of(model) == actor) watch.forget_queue();
  }
}

std::map<ModelId, Deployment> OracleCore::deployments(Instant now) const {
  std::map<ModelId, Deployment> deployments;
  for (const auto& [name, worker] : workers_) {
    if (now - worker.heard > options_.silence) continue;
    for (const ModelLoad& load : worker.letter.models) {
      Deployment& deployment = deployments[load.model];
      const auto others = worker.others.find(load.model);
      const double share = others == worker.others.end() ? 0.0 : others->second;
      deployment.others += (share - deployment.others) / ++deployment.workers;
      deployment.devices = int(std::max<std::int64_t>(1, worker.letter.devices));
    }
  }
  return deployments;
}

void OracleCore::wake(Timer timer, Instant now, Outbox& out) {
  if (timer != kTick) return;
  const std::map<ModelId, Deployment> where = deployments(now);
  Forecast forecast;
  forecast.models.reserve(models_.size());
  for (auto& [model, watch] : models_) {
    const auto found = where.find(model);
    watch.tick(found == where.end() ? Deployment{} : found->second, now, calibrations_);
    forecast.models.push_back(watch.forecast());
  }
  for (const ActorName& hearer : options_.hearers) out.send(hearer, forecast);
  out.set_timer(kTick, now + options_.every);
  fit_next();
}

void OracleCore::fit_next() {
  auto turn = models_.upper_bound(fitted_);
  for (std::size_t i = 0; i < models_.size(); ++i, ++turn) {
    if (turn == models_.end()) turn = models_.begin();
    if (!turn->second.fit_one()) continue;
    fitted_ = turn->first;
    return;
  }
}

OracleScore OracleCore::score() const {
  return {calibrations_.prefill_attainment.score(), calibrations_.decode_attainment.score(), calibrations_.kv.score(),
          calibrations_.compute.score(), calibrations_.bandwidth.score()};
}

}  // namespace sangam
