// Events in order of time: arrivals and ends of steps.
#include "tests/unit/oracle/played_mesh.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace sangam::played {
namespace {

constexpr std::int64_t kChunk = 512;  // Tokens of a prompt in one step.

Micros micros(double seconds) { return Micros(std::int64_t(seconds * 1e6)); }
Millis millis(double seconds) { return Millis(std::int64_t(seconds * 1e3)); }

}  // namespace

PlayedMesh::PlayedMesh(const ModelId& model, const StepLaw& law, const Device& device, const Demand& demand,
                       std::uint64_t seed)
    : model_(model), law_(law), device_(device), demand_(demand), random_(seed), bursts_(demand.bursts) {
  status_.model = model;
  next_burst_ = demand_.burst_every * std::exponential_distribution<double>(1.0)(bursts_);
  schedule_arrival();
}

double PlayedMesh::rate(double at) const {
  const double tide = 1.0 + 0.6 * std::sin(2.0 * M_PI * at / demand_.period);
  return demand_.rate * tide * (at < burst_until_ ? burst_ : 1.0);
}

double PlayedMesh::load() const {
  const double steps = std::ceil(demand_.input / double(kChunk));
  const double prompt = steps * law_.fixed + demand_.input * law_.per_prompt_token;
  const double tokens = demand_.output * (law_.per_sequence + law_.per_context * demand_.input);
  return rate(now_) * (prompt + tokens);
}

void PlayedMesh::schedule_arrival() {
  if (now_ >= next_burst_) {
    burst_ = std::uniform_real_distribution<double>(1.5, 3.0)(bursts_);
    burst_until_ = next_burst_ + std::uniform_real_distribution<double>(10.0, 60.0)(bursts_);
    next_burst_ = burst_until_ + demand_.burst_every * std::exponential_distribution<double>(1.0)(bursts_);
  }
  next_arrival_ = now_ + std::exponential_distribution<double>(rate(now_))(random_);
}

void PlayedMesh::arrive() {
  const auto draw = [&](double mean, double spread) {
    std::lognormal_distribution<double> length(std::log(mean) - spread * spread / 2.0, spread);
    return std::clamp<std::int64_t>(std::int64_t(length(random_)), 1, 16'000);
  };
  Request request;
  request.came = now_;
  request.input = draw(demand_.input, demand_.input_spread);
  request.output = draw(demand_.output, demand_.output_spread);
  request.ttft_slo = std::round((demand_.ttft_fixed + demand_.ttft_per_token * double(request.input)) * 1e3) / 1e3;
  request.deadline = now_ + request.ttft_slo;
  ++status_.arrived;
  status_.input_tokens += std::uint64_t(request.input);
  status_.input_tokens_squared += double(request.input) * double(request.input);
  waiting_.emplace(request.deadline, request);
  start_idle();
  schedule_arrival();
}

void PlayedMesh::start_idle() {
  for (const int index : serving_) {
    if (!workers_.at(index).working) begin_step(index);
  }
}

/// The earliest deadline first; what would be late even now, alone, is refused.
void PlayedMesh::take_prompt(Worker& worker) {
  while (worker.prompt.empty() && !waiting_.empty()) {
    const Request request = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    const double steps = std::ceil(double(request.input) / double(kChunk));
    const double takes = steps * law_.fixed + double(request.input) * law_.per_prompt_token;
    if (now_ + takes > request.deadline) {
      end(request, ErrorCode::cannot_be_on_time);
    } else {
      worker.prompt.push_back(request);
    }
  }
}

void PlayedMesh::begin_step(int index) {
  Worker& worker = workers_.at(index);
  if (serving_.contains(index)) take_prompt(worker);
  worker.working = !worker.prompt.empty() || !worker.running.empty();
  if (!worker.working) return;
  worker.chunk = worker.prompt.empty() ? 0 : std::min(kChunk, worker.prompt[0].input - worker.prompt[0].computed);
  double context = 0.0;
  for (const Request& r : worker.running) context += double(r.input + r.told);
  const double sequences = double(worker.running.size());
  const double noise = std::exp(std::normal_distribution<double>(0.0, law_.noise)(random_));
  worker.took = noise * (law_.fixed + law_.per_prompt_token * double(worker.chunk) + law_.per_sequence * sequences +
                         law_.per_context * context);
  worker.flop += (double(worker.chunk) + sequences) * law_.flop_per_token;
  worker.read += law_.weights + context * law_.kv_per_token;
  worker.load.context_tokens += std::uint64_t(context);
  steps_.emplace(now_ + worker.took, index);
}

void PlayedMesh::end_step(int index) {
  Worker& worker = workers_.at(index);
  ModelLoad& load = worker.load;
  const double sequences = double(worker.running.size());
  const double prompts = double(worker.chunk) / (double(worker.chunk) + sequences);
  ++worker.steps;
  load.prefill_tokens += std::uint64_t(worker.chunk);
  load.output_tokens += worker.running.size();
  load.decode_steps += worker.running.empty() ? 0 : 1;
  load.prefill_time += micros(worker.took * prompts);
  load.decode_time += micros(worker.took * (1.0 - prompts));
  std::erase_if(worker.running, [&](Request& request) {
    token(request);
    if (request.told < request.output) return false;
    end(request, ErrorCode::none);
    return true;
  });
  if (!worker.prompt.empty()) {
    Request& prompt = worker.prompt[0];
    prompt.computed += worker.chunk;
    if (prompt.computed >= prompt.input) {
      prompt.first = now_;
      token(prompt);
      if (prompt.told < prompt.output) {
        worker.running.push_back(prompt);
      } else {
        end(prompt, ErrorCode::none);
      }
      worker.prompt.clear();
    }
  }
  begin_step(index);
}

void PlayedMesh::token(Request& request) {
  const double due = request.deadline + double(request.told) * demand_.tpot;
  request.late += now_ > due ? 1 : 0;
  ++request.told;
}

void PlayedMesh::end(const Request& request, ErrorCode code) {
  Window& window = windows_[int(request.came / 10.0)];
  window.requests += 1.0;
  window.on_time += code == ErrorCode::none && request.first <= request.deadline ? 1.0 : 0.0;
  ServedRequest s;
  s.model = model_;
  s.input = Tokens(request.input);
  s.ttft_slo = millis(request.ttft_slo);
  s.tpot_slo = millis(demand_.tpot);
  s.code = code;
  if (code == ErrorCode::none) {
    s.output = Tokens(request.output);
    s.ttft = micros(request.first - request.came);
    if (request.output > 1) s.tpot = micros((now_ - request.first) / double(request.output - 1));
    s.late = Tokens(request.late);
    ++status_.ended;
    status_.output_tokens += std::uint64_t(request.output);
    status_.output_tokens_squared += double(request.output) * double(request.output);
  }
  served_.push_back(s);
}

void PlayedMesh::play(double until) {
  while (true) {
    const double step = steps_.empty() ? INFINITY : steps_.top().first;
    const double next = std::min(step, next_arrival_);
    if (next > until) break;
    now_ = next;
    if (step <= next_arrival_) {
      const int index = steps_.top().second;
      steps_.pop();
      end_step(index);
    } else {
      arrive();
    }
  }
  now_ = until;
}

void PlayedMesh::set_workers(int count) {
  while (int(serving_.size()) > count) serving_.erase(std::prev(serving_.end()));
  while (int(serving_.size()) < count) {
    const int index = next_worker_++;
    Worker& worker = workers_[index];
    worker.name = "worker/" + model_.text() + "-" + std::to_string(index);
    worker.began = worker.told_at = now_;
    worker.load.model = model_;
    serving_.insert(index);
  }
  start_idle();
}

QueueStatus PlayedMesh::queue_status() {
  ++status_.sequence;
  status_.waiting = std::int64_t(waiting_.size());
  return status_;
}

std::vector<Telemetry> PlayedMesh::telemetry() {
  std::vector<Telemetry> letters;
  for (const int index : serving_) {
    Worker& worker = workers_.at(index);
    Telemetry t;
    t.worker = ActorName(worker.name);
    t.incarnation = Incarnation{1};
    t.sequence = ++worker.sequence;
    t.up = micros(now_ - worker.began);
    t.steps = worker.steps;
    const double time = std::max(1e-3, now_ - worker.told_at);
    t.compute = worker.flop / time / device_.flop_per_second;
    t.bandwidth = worker.read / time / device_.bytes_per_second;
    double tokens = 0.0;
    for (const Request& r : worker.running) tokens += double(r.input + r.told);
    for (const Request& r : worker.prompt) tokens += double(r.input);
    worker.load.kv_used = Pages(std::int64_t(std::ceil(tokens * law_.kv_per_token / device_.page)));
    worker.load.running = std::int64_t(worker.running.size());
    t.models.push_back(worker.load);
    worker.flop = worker.read = 0.0;
    worker.told_at = now_;
    letters.push_back(std::move(t));
  }
  return letters;
}

Served PlayedMesh::served() { return {ActorName("gateway/1"), std::exchange(served_, {})}; }

}  // namespace sangam::played
