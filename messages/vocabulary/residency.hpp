// The messages about who is there: instances of models on workers, actors of the mesh, and their state.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <string>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// What a worker is for: whole runs, prompts whose runs others go on with, or going on with such runs.
enum class WorkerRole : std::uint16_t { mixed, prefill, decode };
BOOST_DESCRIBE_ENUM(WorkerRole, mixed, prefill, decode)

/// Worker -> scheduler and gateways: this worker serves the model from now on. Repeated when the hearer
/// appears anew (ActorFound).
struct InstanceReady {
  ActorName worker;
  ModelId model;
  Incarnation incarnation{};
  std::int64_t running_max = 1;  ///< Sequences that may run at once, over all models of the worker.
  Tokens kv_capacity{0};         ///< Tokens of this model that the worker's pages could hold.
  double prefill_tokens_per_second = 0.0;  ///< Measured at load; the prior of the cost model.
  std::string weights_digest;              ///< Hex; names the bytes that serve.
  WorkerRole role = WorkerRole::mixed;
};
BOOST_DESCRIBE_STRUCT(InstanceReady, (),
                      (worker, model, incarnation, running_max, kv_capacity, prefill_tokens_per_second,
                       weights_digest, role))

/// Worker -> scheduler and gateways: the worker serves the model no longer, or could not load it.
struct InstanceGone {
  ActorName worker;
  ModelId model;
  Incarnation incarnation{};
  std::string why;
};
BOOST_DESCRIBE_STRUCT(InstanceGone, (), (worker, model, incarnation, why))

/// Worker -> gateways, twice a second and when a count falls to zero; for metrics. Loss is harmless.
struct InstanceStatus {
  ActorName worker;
  ModelId model;
  std::int64_t running = 0;
  std::int64_t waiting = 0;  ///< Handed over, not yet in a step.
  Pages kv_used{0};
  Pages kv_total{0};  ///< Of the worker's pool.
  std::uint64_t preemptions = 0;       ///< Since the worker's start, as the following counts.
  std::uint64_t prefix_queries = 0;    ///< Tokens looked up.
  std::uint64_t prefix_hits = 0;       ///< Tokens found.
  std::uint64_t steps = 0;
  std::uint64_t self_decodes = 0;  ///< Runs that another worker should have gone on with, and none did.
};
BOOST_DESCRIBE_STRUCT(InstanceStatus, (),
                      (worker, model, running, waiting, kv_used, kv_total, preemptions, prefix_queries,
                       prefix_hits, steps, self_decodes))

/// Queue -> gateways and oracle, twice a second and when a count falls to zero. Loss is harmless.
struct QueueStatus {
  ModelId model;
  std::int64_t waiting = 0;
  std::int64_t running = 0;
  Tokens waiting_tokens{0};
  std::uint64_t refused = 0;  ///< Since the queue's start, as the following count.
  std::uint64_t expired = 0;
  std::uint64_t sequence = 0;  ///< Of this letter; one that is not above the last is late.
  std::uint64_t arrived = 0;   ///< Requests admitted, first attempts only; their prompts in tokens, and squared.
  std::uint64_t input_tokens = 0;
  double input_tokens_squared = 0.0;
  std::uint64_t ended = 0;  ///< Requests whose last run has ended, and their answers.
  std::uint64_t output_tokens = 0;
  double output_tokens_squared = 0.0;
};
BOOST_DESCRIBE_STRUCT(QueueStatus, (),
                      (model, waiting, running, waiting_tokens, refused, expired, sequence, arrived, input_tokens,
                       input_tokens_squared, ended, output_tokens, output_tokens_squared))

/// The mesh -> every local actor: an actor can be reached, for the first time or under a new incarnation.
struct ActorFound {
  ActorName actor;
  Incarnation incarnation{};
};
BOOST_DESCRIBE_STRUCT(ActorFound, (), (actor, incarnation))

/// The mesh -> every local actor: an actor is gone, and so is all that was on the way to it. An actor that
/// returns before its loss was noticed causes ActorLost, then ActorFound.
struct ActorLost {
  ActorName actor;
  Incarnation incarnation{};
  std::string why;
};
BOOST_DESCRIBE_STRUCT(ActorLost, (), (actor, incarnation, why))

}  // namespace sangam
