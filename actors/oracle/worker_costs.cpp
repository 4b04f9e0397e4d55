// Little's law for the sequences that decode, and utilisation for the rest.
#include "actors/oracle/worker_costs.hpp"

#include <algorithm>
#include <cmath>

namespace sangam {
namespace {

constexpr double kSaturation = 0.98;  // Of a worker's time; beyond it no mean exists.
constexpr double kShareStep = 0.2;    // How fast the prefix cache's share follows, a sample.

}  // namespace

WorkerCosts::WorkerCosts(const ModelPrior& prior)
    : prefill_({prior.prefill_fixed, prior.prefill_per_token, 0.0}, {1.0, 512.0, 1.0}),
      decode_({prior.decode_fixed, prior.decode_per_token, prior.decode_per_context}, {1.0, 8.0, 8192.0}) {}

void WorkerCosts::learn(const LoadDelta& delta, double input_mean) {
  const double tokens_a_prompt = std::max(1.0, input_mean * computed_share_);
  prefill_.learn({delta.prefill_tokens / tokens_a_prompt, delta.prefill_tokens, 0.0}, delta.prefill_seconds);
  // A sequence's first token is the prefill's; what is left was decoded.
  decode_.learn({delta.decode_steps, delta.output_tokens, delta.context_tokens}, delta.decode_seconds);
}

void WorkerCosts::learn_computed(double arrived_tokens, double computed_tokens) {
  if (arrived_tokens <= 0.0) return;
  const double share = std::clamp(computed_tokens / arrived_tokens, 0.05, 1.0);
  computed_share_ += kShareStep * (share - computed_share_);
}

double WorkerCosts::prefill(double input_tokens) const {
  return prefill_.seconds({1.0, input_tokens * computed_share_, 0.0});
}

OperatingPoint WorkerCosts::operate(const Traffic& traffic, double workers, double others, Duty duty) const {
  OperatingPoint point;
  const auto& [fixed, per_token, unused] = prefill_.coefficients();
  point.service = prefill(traffic.input_mean);
  const double by_length = per_token * computed_share_ / std::max(1e-9, point.service);
  point.service_scv = by_length * by_length * traffic.input_variance;
  if (duty != Duty::decode) point.prefill_share = traffic.requests_per_second * point.service / workers;

  const auto& [per_step, per_sequence, per_context] = decode_.coefficients();
  const double out = std::max(1.0, traffic.output_mean);
  // The tokens of an answer read prompt + 0, 1, ... tokens: E[in out + out^2 / 2] / E[out].
  point.context = traffic.input_mean + (out + traffic.output_variance / out) / 2.0;
  const double marginal = per_sequence + per_context * point.context;
  const double tokens = duty == Duty::prefill ? 0.0 : traffic.requests_per_second * out / workers;
  const double taken = std::min(kSaturation, others);
  point.slowdown = 1.0 / (1.0 - std::min(kSaturation, tokens * marginal + taken));
  const double free = 1.0 - std::min(kSaturation, point.prefill_share + taken);
  point.decode_load = tokens * marginal / free;
  // batch = tokens x step (Little), step = (fixed + marginal x (batch + 1)) / free.
  const double room = std::max(free * (1.0 - kSaturation), free - tokens * marginal);
  point.batch = tokens * (per_step + marginal) / room;
  point.step = (per_step + marginal * (point.batch + 1.0)) / free;
  // Sequences come at random, so the number that decode is Poisson: a step is made while there is any.
  point.steps_per_second = std::min(tokens, (1.0 - std::exp(-point.batch)) / point.step);
  return point;
}

}  // namespace sangam
