// Little's law for the sequences that decode, and utilisation for the rest.
#include "actors/oracle/worker_costs.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

constexpr double kSaturation = 0.98;  // Of a worker's time; beyond it no mean exists.
constexpr int kSettled = 60;          // Letters.
constexpr double kShareStep = 0.2;    // How fast the prefix cache's share follows, a sample.

/// The tokens of an answer read prompt + 0, 1, ... tokens: E[in out + out^2 / 2] / E[out].
double mean_context(const Traffic& traffic) {
  const double out = std::max(1.0, traffic.output_mean);
  return traffic.input_mean + (out + traffic.output_variance / out) / 2.0;
}

}  // namespace

WorkerCosts::WorkerCosts(const ModelPrior& prior)
    : fit_({prior.step_fixed, prior.prompt_token, prior.sequence, prior.context_token}, {1.0, 256.0, 4.0, 4096.0}),
      chunk_(std::max(1.0, prior.chunk)),
      prompt_fixed_(prior.prompt_fixed) {
  for (const WorkSample& sample : prior.samples) {
    LoadDelta delta;
    delta.steps = sample.steps;
    delta.prompts = sample.prompts;
    delta.prefill_tokens = sample.prefill_tokens;
    delta.output_tokens = sample.output_tokens;
    delta.context_tokens = sample.context_tokens;
    delta.busy = sample.seconds;
    learn(delta);
  }
}

void WorkerCosts::learn(const LoadDelta& delta) {
  // Who does not count steps: those with a decode, or those that the prompts need.
  const double steps = std::max({delta.steps, delta.decode_steps, delta.prefill_tokens / chunk_});
  fit_.learn({steps, delta.prefill_tokens, delta.output_tokens, delta.context_tokens},
             std::max(0.0, delta.busy - prompt_fixed_ * delta.prompts));
  if (delta.busy > 0.0 && letters_ < kSettled) ++letters_;
}

bool WorkerCosts::settled() const { return letters_ >= kSettled; }

ModelCosts WorkerCosts::costs() const {
  const auto& [step, prompt_token, sequence, context_token] = fit_.coefficients();
  return {step * 1e6, prompt_fixed_ * 1e6, prompt_token * 1e6, sequence * 1e6, context_token * 1e6, settled()};
}

void WorkerCosts::learn_computed(double arrived_tokens, double computed_tokens) {
  if (arrived_tokens <= 0.0) return;
  const double share = std::clamp(computed_tokens / arrived_tokens, 0.05, 1.0);
  computed_share_ += kShareStep * (share - computed_share_);
}

/// The mean of the rounded up quotient, for tokens that are spread over more than a chunk.
double WorkerCosts::chunks(double input_tokens) const {
  return std::max(1.0, input_tokens * computed_share_ / chunk_ + 0.5);
}

double WorkerCosts::prefill(double input_tokens, double chunk_extra) const {
  const CostFit::Vector& cost = fit_.coefficients();
  return prompt_fixed_ + chunks(input_tokens) * (cost[0] + chunk_extra) + input_tokens * computed_share_ * cost[1];
}

double WorkerCosts::marginal(double context) const {
  return fit_.coefficients()[2] + fit_.coefficients()[3] * context;
}

double WorkerCosts::work(const Traffic& traffic, Duty duty) const {
  const double prompts = duty == Duty::decode ? 0.0 : prefill(traffic.input_mean);
  return duty == Duty::prefill ? prompts : prompts + traffic.output_mean * marginal(mean_context(traffic));
}

double WorkerCosts::workers_for(const Traffic& traffic, double load) const {
  return traffic.requests_per_second * work(traffic, Duty::both) / load;
}

OperatingPoint WorkerCosts::operate(const Traffic& traffic, double workers, double others, Duty duty) const {
  OperatingPoint point;
  point.peakedness = traffic.peakedness;
  const auto& [per_step, per_prompt_token, per_sequence, per_context] = fit_.coefficients();
  const double taken = std::min(kSaturation, others);
  point.stretch = 1.0 / (1.0 - taken);
  const double offered = traffic.requests_per_second / workers;
  point.carried = std::min(1.0, kSaturation * (1.0 - taken) / std::max(1e-9, offered * work(traffic, duty)));
  const double rate = offered * point.carried;
  if (duty != Duty::decode) {
    point.prompt_share = rate * (prompt_fixed_ + traffic.input_mean * computed_share_ * per_prompt_token);
  }
  point.context = mean_context(traffic);
  const double each = marginal(point.context);
  const double tokens = duty == Duty::prefill ? 0.0 : rate * std::max(1.0, traffic.output_mean);
  // batch = tokens x step (Little), step = (per_step + each x (batch + 1)) / free: steps with a chunk and without
  // make tokens at this mean rate, whatever their mixture.
  const double free = std::max(1.0 - kSaturation, 1.0 - point.prompt_share - taken);
  const double room = std::max(free * (1.0 - kSaturation), free - tokens * each);
  point.batch = tokens * (per_step + each) / room;
  point.step = (per_step + each * (point.batch + 1.0)) / free;
  // Sequences come at random, so the number that decode is Poisson: steps are made while there is any, or a chunk.
  const double some = 1.0 - std::exp(-point.batch);
  const double full_step = per_step + each * point.batch / std::max(1e-9, some);
  point.steps_per_second = std::min(tokens, some * free / std::max(1e-9, full_step)) +
                           rate * chunks(traffic.input_mean) * (1.0 - some);

  point.chunk_extra = each * point.batch;
  point.service = point.stretch * prefill(traffic.input_mean, point.chunk_extra);
  const double by_length = point.stretch * computed_share_ * (per_prompt_token + (per_step + point.chunk_extra) / chunk_);
  point.service_scv = by_length * by_length * traffic.input_variance / std::max(1e-18, point.service * point.service);
  return point;
}

}  // namespace sangam
