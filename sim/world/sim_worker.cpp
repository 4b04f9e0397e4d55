// Runs of a simulated worker: prefills in a row, decodes on one line, hand-overs.
#include "sim/world/sim_worker.hpp"

#include <algorithm>
#include <cmath>

namespace sangam::sim {
namespace {

constexpr Timer kWork{1};
constexpr Timer kMove{2};
constexpr Timer kTell{3};
const ActorName kScheduler("scheduler");
constexpr double kTick = 0.5;  // Microseconds: what falls within is due.

double micros_of(Instant at) { return double(at.time_since_epoch().count()); }

TokensProduced word_of(const Run& run) {
  TokensProduced said;
  said.request = run.request;
  said.attempt = run.attempt;
  said.first = run.generated.size();
  return said;
}

Instant instant_of(double micros) { return Instant(Micros(std::int64_t(std::ceil(micros)))); }

}  // namespace

SimWorker::SimWorker(SimWorkerOptions options, Journal& journal) : options_(std::move(options)), journal_(journal) {
  for (const ModelSpec* spec : options_.models) {
    Holding& holding = holdings_[spec->id];
    holding.spec = spec;
    holding.load.model = spec->id;
    // Every model has been read once; its copy in host memory stays.
    holding.residency = holding.target = Residency::warm;
  }
  for (const ModelId& model : options_.active) {
    Holding& holding = holdings_.at(model);
    holding.residency = holding.target = Residency::active;
  }
  weights_ = union_of(specs_on());
  telemetry_.worker = options_.name;
  telemetry_.incarnation = options_.incarnation;
  telemetry_.devices = options_.devices;
}

void SimWorker::hear(const Message& message, Instant now, Outbox& out) {
  (void)deliver(*this, message, now, out);
}

void SimWorker::wake(Timer timer, Instant now, Outbox& out) {
  if (timer == kTell) return say_telemetry(now, out);
  if (timer == kMove) return move_done(now, out);
  settle(micros_of(now));
  if (in_prefill() != nullptr && prefill_left_ <= kTick) prefill_done(now, out);
  finish_due(now, out);
  set_alarm(now, out);
}

/// Brings work and counts up to `now`.
void SimWorker::settle(double now) {
  const double passed = now - settled_at_;
  settled_at_ = now;
  if (passed <= 0.0) return;
  double steps_time = 0.0;
  for (const Holding* holding : decoding_) steps_time += step_of(*holding);
  const bool prefilling = in_prefill() != nullptr;
  const double decode_share = steps_time <= 0.0 ? 0.0 : prefilling ? 1.0 - prefill_speed_ : 1.0;
  if (prefilling) prefill_left_ -= prefill_speed_ * passed;
  if (prefilling || steps_time > 0.0) telemetry_.busy += Micros(std::int64_t(passed));
  telemetry_.compute += prefilling ? prefill_speed_ * passed : 0.0;
  telemetry_.bandwidth += decode_share * passed;
  if (steps_time <= 0.0) return;
  const double tokens = line_.tokens_at(now) - line_.tokens_at(now - passed);
  for (Holding* holding : decoding_) {
    holding->decode_time += decode_share * passed * step_of(*holding) / steps_time;
    holding->decode_steps += tokens;
    holding->context_tokens += tokens * holding->context;
  }
}

/// The run whose prompt is in work: one that finds no KV is first and does nothing.
const SimWorker::LiveRun* SimWorker::in_prefill() const {
  if (prefills_.empty()) return nullptr;
  const LiveRun& first = runs_.at(prefills_.front());
  return first.stage == Stage::prefilling ? &first : nullptr;
}

double SimWorker::step_of(const Holding& holding) {
  return holding.spec->step(double(holding.decoding), holding.context);
}

/// After any change of who prefills and decodes: from now on at these speeds.
void SimWorker::rebend(double now) {
  const LiveRun* first = in_prefill();
  const Holding* prefilling = first == nullptr ? nullptr : first->holding;
  double steps = 0.0;
  for (const Holding* holding : decoding_) {
    steps += step_of(*holding);
    // Rows of one model share a step: its weights have been read for the chunk.
    if (holding == prefilling) steps -= holding->spec->decode_fixed;
  }
  prefill_speed_ = 1.0;
  double step = steps > 0.0 ? steps : DecodeLine::kNever;
  if (prefilling != nullptr && !decoding_.empty()) {
    const double chunks = std::ceil(double(first->prefill.count()) / double(options_.prefill_chunk.count()));
    const double chunk = prefilling->spec->prefill(first->prefill) / std::max(chunks, 1.0);
    prefill_speed_ = chunk / (chunk + steps);
    step = chunk + steps;
  }
  line_.bend(now, step);
}

SimWorker::LiveRun& SimWorker::admit(Run run, Holding& holding) {
  const RequestId request = run.request;
  LiveRun& live = runs_[request];
  live = LiveRun{};
  live.holding = &holding;
  live.prefill = Tokens(std::int64_t(run.prompt.size() + run.generated.size()));
  live.left = journal_.of(request).output.count() - std::int64_t(run.generated.size());
  run.prompt.clear();
  live.run = std::move(run);
  ++holding.live;
  return live;
}

Bytes SimWorker::kv_of(const LiveRun& live) const {
  return live.holding->spec->kv_per_token * (live.prefill.count() + live.left);
}

void SimWorker::take_kv(LiveRun& live, Bytes bytes) {
  live.kv = bytes;
  live.holding->kv += bytes;
  kv_ += bytes;
}

void SimWorker::give_back_kv(LiveRun& live) {
  live.holding->kv -= live.kv;
  kv_ -= live.kv;
  live.kv = Bytes(0);
}

Bytes SimWorker::free_bytes() const { return options_.device.usable() - weights_ - kv_; }

void SimWorker::on(const Run& run, Instant now, Outbox& out) {
  const auto found = holdings_.find(run.model);
  const bool takes = found != holdings_.end() && found->second.residency == Residency::active &&
                     found->second.target == Residency::active;
  if (!takes) {  // The order to leave crossed the run.
    TokensProduced said = word_of(run);
    said.finish = FinishReason::failed;
    said.code = ErrorCode::unavailable;
    out.send(run.tokens_to, std::move(said));
    RunEnded ended{run.request, run.attempt, options_.name, run.model, FinishReason::failed};
    out.send(queue_of(run.model), ended);
    out.send(kScheduler, std::move(ended));
    return;
  }
  settle(micros_of(now));
  LiveRun& live = admit(run, found->second);
  if (found->second.live == 1) say_state(found->second, false, out);
  live.stage = Stage::waiting;
  prefills_.push_back(run.request);
  if (prefills_.size() == 1) start_prefill(micros_of(now));
  set_alarm(now, out);
}

/// The first in the row begins, if its KV fits; who finds no room holds up those behind, as in a real engine.
void SimWorker::start_prefill(double now) {
  if (prefills_.empty()) return rebend(now);
  LiveRun& live = runs_.at(prefills_.front());
  const Bytes need = kv_of(live);
  if (live.stage == Stage::waiting && need <= std::max(free_bytes(), Bytes(0))) {
    take_kv(live, need);
    live.stage = Stage::prefilling;
    live.prefill_began = now;
    prefill_left_ = live.holding->spec->prefill(live.prefill);
  }
  rebend(now);
}

void SimWorker::prefill_done(Instant now, Outbox& out) {
  const RequestId request = prefills_.front();
  prefills_.pop_front();
  LiveRun& live = runs_.at(request);
  const double at = micros_of(now);
  const Micros measured(std::int64_t(live.holding->spec->prefill(live.prefill)));
  live.holding->load.prefill_time += measured;
  live.holding->load.prefill_tokens += std::uint64_t(live.prefill.count());
  live.holding->load.output_tokens += 1;
  out.send(kScheduler, PrefillFinished{request, live.run.attempt, options_.name, live.run.model,
                                       live.run.estimated, Micros(std::int64_t(at - live.prefill_began)), live.prefill});
  journal_.of(request).produce(at);
  TokensProduced said = word_of(live.run);
  said.tokens = {0};
  out.send(live.run.tokens_to, std::move(said));
  live.run.generated.push_back(0);
  --live.left;
  if (live.left <= 0) {
    end(request, FinishReason::length, out);
  } else if (!live.run.decode_on.empty()) {
    live.stage = Stage::offered;
    offer(live, now, out);
  } else {
    decode(live, at);
  }
  start_prefill(at);
}

/// To the next taker that has not refused; with none left, it decodes here.
void SimWorker::offer(LiveRun& live, Instant now, Outbox& out) {
  if (live.asked >= live.run.decode_on.size()) return decode(live, micros_of(now));
  HandOver offered;
  offered.run = live.run;
  offered.from = options_.name;
  offered.incarnation = options_.incarnation;
  out.send(live.run.decode_on[live.asked++], std::move(offered));
}

void SimWorker::on(const HandOver& offered, Instant now, Outbox& out) {
  const Run& run = offered.run;
  const auto found = holdings_.find(run.model);
  HandOverEnded answer{run.request, run.attempt, options_.name};
  const bool takes = found != holdings_.end() && found->second.residency == Residency::active &&
                     found->second.target == Residency::active &&
                     std::int64_t(runs_.size()) < options_.running_max && !runs_.contains(run.request);
  settle(micros_of(now));
  if (takes) {
    LiveRun& live = admit(run, found->second);
    // Journal: what it has got lies in the giver's pages; the prompt's length is the journal's.
    live.prefill = journal_.of(run.request).input + Tokens(std::int64_t(run.generated.size()));
    if (const Bytes need = kv_of(live); need <= free_bytes()) {
      take_kv(live, need);
      if (found->second.live == 1) say_state(found->second, false, out);
      const RunMoved moved{run.request, run.attempt, run.model, offered.from, options_.name};
      out.send(queue_of(run.model), moved);
      out.send(kScheduler, moved);
      decode(live, micros_of(now));
      rebend(micros_of(now));
    } else {
      --found->second.live;
      runs_.erase(run.request);
      answer.code = ErrorCode::exhausted;
    }
  } else {
    answer.code = ErrorCode::unavailable;
  }
  out.send(offered.from, std::move(answer));
  set_alarm(now, out);
}

void SimWorker::on(const HandOverEnded& ended, Instant now, Outbox& out) {
  const auto found = runs_.find(ended.request);
  if (found == runs_.end() || found->second.stage != Stage::offered) return;
  settle(micros_of(now));
  LiveRun& live = found->second;
  if (ended.code == ErrorCode::none) {
    Holding& holding = *live.holding;
    give_back_kv(live);
    --holding.live;
    runs_.erase(found);
    drained(holding, out);
    if (in_prefill() == nullptr) start_prefill(micros_of(now));
  } else {
    offer(live, now, out);
    rebend(micros_of(now));
  }
  set_alarm(now, out);
}

void SimWorker::decode(LiveRun& live, double now) {
  live.stage = Stage::decoding;
  Holding& holding = *live.holding;
  if (holding.decoding++ == 0) decoding_.push_back(&holding);
  holding.context += double(live.prefill.count()) + 0.5 * double(live.left);
  live.joined = line_.tokens_at(now);
  ends_.emplace(live.joined + double(live.left), live.run.request);
}

void SimWorker::finish_due(Instant now, Outbox& out) {
  const double at = micros_of(now);
  bool any = false;
  while (!ends_.empty() && line_.time_at(ends_.top().first) <= at + kTick) {
    const auto [tokens, request] = ends_.top();
    ends_.pop();
    const auto found = runs_.find(request);
    if (found == runs_.end() || found->second.stage != Stage::decoding) continue;
    LiveRun& live = found->second;
    if (live.joined + double(live.left) != tokens) continue;  // An earlier stay of the request.
    JournalEntry& entry = journal_.of(request);
    line_.each_token(live.joined, live.left, [&](double when) { entry.produce(when); });
    live.holding->load.output_tokens += std::uint64_t(live.left);
    end(request, FinishReason::length, out);
    any = true;
  }
  if (!any) return;
  in_prefill() == nullptr ? start_prefill(at) : rebend(at);
  if (line_.bends() < 1024) return;
  double oldest = line_.tokens_at(at);
  for (const auto& [id, live] : runs_) {
    if (live.stage == Stage::decoding) oldest = std::min(oldest, live.joined);
  }
  line_.forget_before(oldest);
}

/// Every way out of a run; the caller bends the line.
void SimWorker::end(RequestId request, FinishReason finish, Outbox& out) {
  const auto found = runs_.find(request);
  LiveRun& live = found->second;
  Holding& holding = *live.holding;
  if (live.stage == Stage::decoding) {
    --holding.decoding;
    holding.context -= double(live.prefill.count()) + 0.5 * double(live.left);
    if (holding.decoding == 0) {
      holding.context = 0.0;
      std::erase(decoding_, &holding);
    }
  }
  give_back_kv(live);
  TokensProduced said = word_of(live.run);
  said.finish = finish;
  out.send(live.run.tokens_to, std::move(said));
  RunEnded ended{request, live.run.attempt, options_.name, live.run.model, finish,
                 Tokens(journal_.of(request).produced)};
  out.send(queue_of(live.run.model), ended);
  out.send(kScheduler, std::move(ended));
  --holding.live;
  runs_.erase(found);
  drained(holding, out);
}

void SimWorker::on(const Cancel& cancel, Instant now, Outbox& out) {
  const auto found = runs_.find(cancel.request);
  if (found == runs_.end()) return;
  settle(micros_of(now));
  const auto place = std::find(prefills_.begin(), prefills_.end(), cancel.request);
  const bool was_first = place == prefills_.begin() && place != prefills_.end();
  if (place != prefills_.end()) prefills_.erase(place);
  end(cancel.request, FinishReason::cancelled, out);
  if (was_first) {
    start_prefill(micros_of(now));
  } else {
    rebend(micros_of(now));
  }
  set_alarm(now, out);
}

void SimWorker::set_alarm(Instant now, Outbox& out) {
  double next = DecodeLine::kNever;
  if (in_prefill() != nullptr) next = micros_of(now) + std::max(prefill_left_, 0.0) / prefill_speed_;
  if (!ends_.empty()) next = std::min(next, line_.time_at(ends_.top().first));
  if (next < 1e17) out.set_timer(kWork, std::max(instant_of(next), now + Micros(1)));
}

}  // namespace sangam::sim
