// Foresees what each model needs and what more workers would give it, from what queues, workers and gateways tell.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "actors/oracle/model_watch.hpp"
#include "actors/oracle/oracle_options.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

/// Owns what it has learned of models and workers; nothing of it survives a restart, and the laws of queues and
/// rooflines stand in until it has learned again. Same events at the same instants, same forecasts.
class OracleCore {
 public:
  explicit OracleCore(OracleOptions options);
  OracleCore(const OracleCore&) = delete;  // The models' watches refer to the options.
  OracleCore& operator=(const OracleCore&) = delete;

  void start(Instant now, Outbox& out);
  void on(const QueueStatus& status, Instant now, Outbox& out);
  void on(const Telemetry& telemetry, Instant now, Outbox& out);
  void on(const Served& served, Instant now, Outbox& out);
  void on(const ModelTable& table, Instant now, Outbox& out);
  void on(const ActorFound& found, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

  /// Of all models together.
  [[nodiscard]] OracleScore score() const;
  /// Forgets the outcomes so far, not what was learned from them.
  void score_anew() { calibrations_ = {}; }

 private:
  struct Worker {
    Telemetry letter;  ///< The last one that counted.
    Instant heard{};
    std::map<ModelId, double> others;  ///< By model: share of the worker's time that the other ones used.
  };

  /// The model's watch, made when it is new; null beyond the bound.
  [[nodiscard]] ModelWatch* watch(const ModelId& model, Outbox& out);
  /// Divides what the worker did since its last letter among its models.
  void note_delta(Worker& worker, const Telemetry& next);
  void forget_queue(const ActorName& actor);
  /// Fitting takes milliseconds, so one model gets one fit a tick, in turn.
  void fit_next();
  [[nodiscard]] std::map<ModelId, Deployment> deployments(Instant now) const;

  OracleOptions options_;
  std::map<ModelId, ModelWatch> models_;
  std::map<ActorName, Worker> workers_;
  Calibrations calibrations_;
  ModelId fitted_;      ///< Whose turn was last.
  bool full_ = false;  ///< It was said that there are too many models.
};

}  // namespace sangam
