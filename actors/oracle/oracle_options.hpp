// How the oracle is set up, as read from the configuration: whom it tells, over which windows it looks, and what it
// believes of models and devices before it has seen them at work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// Some work of one model on one worker that was measured before: what was done in how long.
struct WorkSample {
  double steps = 0.0;
  double prompts = 0.0;
  double prefill_tokens = 0.0;
  double output_tokens = 0.0;   ///< Made, the first ones of prompts included.
  double context_tokens = 0.0;  ///< Read by attention for all of these but the first ones.
  double seconds = 0.0;         ///< In the steps.
};

/// What one worker of a model's class is believed to do with it, until telemetry tells better.
struct ModelPrior {
  double flop_per_token = 0.0;  ///< 2 for each weight; 0: unknown, time in prefill stands for compute.
  Bytes weights{0};             ///< Read by each step; 0: unknown, time in decode stands for bandwidth.
  Bytes kv_per_token{0};
  double step_fixed = 0.01;     ///< Seconds a step, beside what is in it:
  double prompt_token = 1e-4;   ///< seconds a token of a prompt,
  double sequence = 2e-4;       ///< a sequence that decodes,
  double context_token = 1e-8;  ///< and a token that its attention reads.
  double chunk = 512.0;         ///< Tokens of a prompt that one step takes at most.
  double prompt_fixed = 0.0;    ///< Seconds a prompt, beside its steps; this alone is not learned.
  double output_mean = 128.0;   ///< Tokens, until answers have ended.
  std::vector<WorkSample> samples;  ///< Learned from at once, as if telemetry had told them.
};

/// One device; a worker of several has as many times the rates.
struct DevicePrior {
  double flop_per_second = 1e14;
  double bytes_per_second = 1e12;
  Bytes page{2 << 20};  ///< Of the pools: telemetry counts pages.
};

struct OracleOptions {
  std::vector<ActorName> hearers;  ///< Who is told each forecast.
  Millis every{500};
  Millis fast{3'000};     ///< The window that sees a burst,
  Millis slow{30'000};    ///< the one that is believed while there is none,
  Millis past{300'000};   ///< and the one of volatility and of rare events.
  Millis silence{3'000};  ///< A worker that has told nothing for so long serves nothing.
  Millis ttft{1'000};  ///< Deadline of first tokens, assumed until a request has ended,
  Millis tpot{0};      ///< and of the time between later ones; 0: none.
  std::size_t instances_max = 64;  ///< Attainment is forecast for 1 to so many workers.
  double confidence = 1.0;         ///< Lower bounds lie so many deviations below the mean.
  std::size_t points_max = 96;     ///< Of one Gaussian process; 128 at most keeps a tick within its time.
  std::size_t fit_points_max = 48;  ///< Of these, hyper-parameters are fitted to so many.
  Millis capacity_sample{15'000};  ///< One observation of demand in each such window,
  Millis attainment_sample{10'000};  ///< and one of attainment; its requests have
  Millis attainment_lag{10'000};     ///< so long to end.
  std::size_t models_max = 4096;
  std::uint64_t seed = 1;  ///< Of the random restarts when hyper-parameters are fitted.
  ModelPrior prior;
  std::map<ModelId, ModelPrior> priors;  ///< Of models that are known better.
  DevicePrior device;
};

}  // namespace sangam
