// What one worker takes for a model's prompts and tokens, learned from telemetry, and how it runs under a load.
#pragma once

#include "actors/oracle/cost_fit.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "actors/oracle/traffic.hpp"

namespace sangam {

/// What one model did on one worker between two letters.
struct LoadDelta {
  double seconds = 0.0;
  double kv_bytes = 0.0;  ///< In use at the end.
  double prefill_tokens = 0.0;
  double output_tokens = 0.0;
  double decode_steps = 0.0;
  double context_tokens = 0.0;
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;
  double compute = 0.0;    ///< The model's part of the worker's share of its peak.
  double bandwidth = 0.0;
  double others = 0.0;     ///< Share of the time that went to other models.
};

/// How one of several workers that are alike runs a model.
struct OperatingPoint {
  double service = 0.0;        ///< Seconds of a prefill, while the worker does nothing else.
  double service_scv = 0.0;
  double prefill_share = 0.0;  ///< Of the worker's time.
  double slowdown = 1.0;       ///< Of a prefill by the tokens and models beside it.
  double context = 0.0;        ///< Mean tokens that a decoded token reads.
  double batch = 0.0;          ///< Mean number of sequences that decode.
  double step = 0.0;           ///< Seconds between two tokens of a sequence.
  double steps_per_second = 0.0;
  double decode_load = 0.0;    ///< Tokens that are asked for over those that could be made; 1 and above: it falls behind.
};

/// What a worker does for a model.
enum class Duty { both, prefill, decode };

class WorkerCosts {
 public:
  explicit WorkerCosts(const ModelPrior& prior);

  /// `input_mean`: tokens of a prompt these days; tells the prompts from their tokens.
  void learn(const LoadDelta& delta, double input_mean);
  /// In some time, prompts of so many tokens came, and so many were computed; the prefix cache had the others.
  void learn_computed(double arrived_tokens, double computed_tokens);

  /// Seconds of a prompt's prefill by itself.
  [[nodiscard]] double prefill(double input_tokens) const;
  [[nodiscard]] double computed_share() const { return computed_share_; }
  /// Each of `workers` takes an equal part of the traffic; `others`: share of their time that other models use.
  [[nodiscard]] OperatingPoint operate(const Traffic& traffic, double workers, double others,
                                       Duty duty = Duty::both) const;

 private:
  CostFit prefill_;  // Over prompts, tokens.
  CostFit decode_;   // Over steps, tokens, context.
  double computed_share_ = 1.0;
};

}  // namespace sangam
