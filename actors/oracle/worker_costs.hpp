// What one worker takes for a model's steps, learned from telemetry, and how it runs under a load.
#pragma once

#include "actors/oracle/cost_fit.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "actors/oracle/traffic.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// What one model did on one worker between two letters.
struct LoadDelta {
  double seconds = 0.0;
  double kv_bytes = 0.0;  ///< In use at the end.
  double steps = 0.0;     ///< Of this model.
  double prompts = 0.0;   ///< As far as their mean length tells.
  double prefill_tokens = 0.0;
  double output_tokens = 0.0;
  double decode_steps = 0.0;  ///< Of its steps, those with a decode.
  double context_tokens = 0.0;
  double busy = 0.0;       ///< Seconds in its steps.
  double compute = 0.0;    ///< The model's part of the worker's share of its peak.
  double bandwidth = 0.0;
  double others = 0.0;     ///< Share of the time that went to other models.
};

/// How one of several workers that are alike runs a model. A step takes a chunk of one prompt and all sequences that
/// decode, so a prompt slows the tokens beside it by its own part of the steps, and they slow it by theirs.
struct OperatingPoint {
  double carried = 1.0;       ///< Part of the traffic that the worker can take; the rest below is of that part.
  double service = 0.0;       ///< Seconds of a mean prompt's steps, with the tokens and models beside it.
  double service_scv = 0.0;   ///< Variance over mean squared.
  double prompt_share = 0.0;  ///< Of the worker's time, for the tokens of prompts.
  double batch = 0.0;         ///< Mean number of sequences that decode.
  double context = 0.0;       ///< Mean tokens that a decoded token reads.
  double step = 0.0;          ///< Seconds between two tokens of a sequence.
  double steps_per_second = 0.0;
  double chunk_extra = 0.0;   ///< Seconds that the tokens beside it add to a step with a chunk,
  double stretch = 1.0;       ///< and by how much other models make all times longer.
  double peakedness = 1.0;    ///< Of the traffic.
};

/// What a worker does for a model.
enum class Duty { both, prefill, decode };

class WorkerCosts {
 public:
  explicit WorkerCosts(const ModelPrior& prior);

  void learn(const LoadDelta& delta);
  /// In some time, prompts of so many tokens came, and so many were computed; the prefix cache had the others.
  void learn_computed(double arrived_tokens, double computed_tokens);

  /// Whether enough was measured that the law no longer moves: what is learned on top of it is then about it.
  [[nodiscard]] bool settled() const;
  /// Each cost by itself.
  [[nodiscard]] ModelCosts costs() const;
  [[nodiscard]] double computed_share() const { return computed_share_; }

  /// Seconds of a prompt's steps; each takes `chunk_extra` more for what is beside it.
  [[nodiscard]] double prefill(double input_tokens, double chunk_extra = 0.0) const;
  /// So many that each would work for `load` of its time.
  [[nodiscard]] double workers_for(const Traffic& traffic, double load) const;
  /// Each of `workers` takes an equal part of the traffic; `others`: share of their time that other models use.
  [[nodiscard]] OperatingPoint operate(const Traffic& traffic, double workers, double others,
                                       Duty duty = Duty::both) const;

 private:
  [[nodiscard]] double chunks(double input_tokens) const;
  /// Seconds that one more sequence adds to a step; `context`: tokens that it reads.
  [[nodiscard]] double marginal(double context) const;
  /// Seconds of steps that a mean request needs at least: its prompt's, and its tokens in steps of others.
  [[nodiscard]] double work(const Traffic& traffic, Duty duty) const;

  CostFit fit_;  // Over steps, tokens of prompts, decoded tokens, tokens of context.
  double chunk_;
  double prompt_fixed_;
  double computed_share_ = 1.0;
  int letters_ = 0;  // With work in them.
};

}  // namespace sangam
