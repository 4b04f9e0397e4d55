// The messages about models that come and go on workers: what each worker holds, orders to change it, and who
// asks for that.
//
// An order is fenced three times: by the epoch of who gives it, so that a deposed lifecycle can do no harm; by
// the incarnation of the worker it is meant for; and by its operation, so that one which comes twice acts once.
#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// How near a model is to serving on a worker: on storage only, with a copy in host memory, on the device.
enum class Residency : std::uint16_t { cold, warm, active };
BOOST_DESCRIBE_ENUM(Residency, cold, warm, active)

[[nodiscard]] constexpr std::string_view name_of(Residency residency) {
  switch (residency) {
    case Residency::cold: return "cold";
    case Residency::warm: return "warm";
    case Residency::active: break;
  }
  return "active";
}

/// What becomes of live requests when a drain's time is up: the model stays active and the order fails, they
/// end as cancelled, or they go on elsewhere with the same bits.
enum class AtDeadline : std::uint16_t { stay, cancel, migrate };
BOOST_DESCRIBE_ENUM(AtDeadline, stay, cancel, migrate)

/// Worker -> lifecycle, planners and gateways: what it holds of one of its models. At each change, when runs begin
/// after there were none or the last one ends (lifecycle only), and when the hearer appears anew.
struct InstanceState {
  ActorName worker;
  ModelId model;
  Incarnation incarnation{};
  Residency residency = Residency::cold;
  Residency target = Residency::cold;  ///< Where an order is taking it; at rest the same.
  std::int64_t live = 0;               ///< Runs taken and not ended.
  Bytes weights{0};  ///< Of all its tensors; 0 as long as they have not been read.
  Bytes missing{0};  ///< Device bytes that making it active would add, beside what others of its segments hold.
  Bytes own{0};      ///< Device bytes that nobody shares with it: what its going would free.
  Bytes host{0};     ///< Of its copy in host memory.
  ErrorCode code = ErrorCode::none;  ///< Of the last attempt to load it; none after a good one.
  std::string why;
  bool pinned = false;  ///< By the last order that said so, until one has it leave.
};
BOOST_DESCRIBE_STRUCT(InstanceState, (),
                      (worker, model, incarnation, residency, target, live, weights, missing, own, host, code,
                       why, pinned))

/// Lifecycle -> worker: bring the model to `target`. Answered by exactly one OrderEnded, also when repeated.
/// Orders for the same model and target join; another target replaces what is under way, whose orders end as
/// cancelled. All or nothing: an order that fails leaves the worker's memory as it was.
struct Order {
  std::uint64_t operation = 0;
  std::uint64_t epoch = 0;     ///< Of the lifecycle; refused when the worker has seen a higher one.
  Incarnation incarnation{};   ///< Of the worker that is meant.
  ModelId model;
  Residency target = Residency::active;
  std::vector<ActorName> sources;  ///< Workers to copy weights from, where they can be reached; then storage.
  std::vector<ModelId> may_evict;  ///< Idle models that may become warm to make room, in this order.
  Millis drain_for{0};             ///< How long live requests may take to end.
  AtDeadline at_deadline = AtDeadline::stay;
  Millis idle_at_least{0};  ///< Fails when the model's last token is more recent.
  bool pin = false;  ///< To be remembered, for a lifecycle that comes anew. An order to leave ends it.
  WorkerRole role = WorkerRole::mixed;  ///< What the instance is for, on a worker whose own role is mixed.
};
BOOST_DESCRIBE_STRUCT(Order, (),
                      (operation, epoch, incarnation, model, target, sources, may_evict, drain_for, at_deadline,
                       idle_at_least, pin, role))

/// One part of an order's work: "open", "ask", "read", "reserve", "copy", "fork", "keep", "ready".
struct Phase {
  std::string name;
  Micros took{0};
  Bytes moved{0};
};
BOOST_DESCRIBE_STRUCT(Phase, (), (name, took, moved))

/// Worker -> lifecycle: how an order ended.
struct OrderEnded {
  std::uint64_t operation = 0;
  ActorName worker;
  ModelId model;
  Incarnation incarnation{};
  Residency residency = Residency::cold;  ///< Now.
  ErrorCode code = ErrorCode::none;
  std::string why;
  std::vector<Phase> phases;
  std::vector<ModelId> evicted;  ///< What became warm to make room.
};
BOOST_DESCRIBE_STRUCT(OrderEnded, (),
                      (operation, worker, model, incarnation, residency, code, why, phases, evicted))

/// Scheduler -> lifecycle, when requests wait for a model that is active nowhere, and again every second as
/// long as that is so; with `waiting` 0 when they do no longer.
struct Wanted {
  ModelId model;
  std::int64_t waiting = 0;
};
BOOST_DESCRIBE_STRUCT(Wanted, (), (model, waiting))

/// Lifecycle -> queue: the model cannot be had at present; what waits for it is refused, and what comes until
/// `retry_after` has passed.
struct Unservable {
  ModelId model;
  ErrorCode code = ErrorCode::unavailable;
  std::string why;
  Millis retry_after{0};
};
BOOST_DESCRIBE_STRUCT(Unservable, (), (model, code, why, retry_after))

/// What an operator can ask for.
enum class CommandVerb : std::uint16_t { load, wake, sleep, unload, drain, fork };
BOOST_DESCRIBE_ENUM(CommandVerb, load, wake, sleep, unload, drain, fork)

/// Gateway -> lifecycle, on an operator's behalf. Answered by exactly one CommandEnded.
struct Command {
  std::uint64_t command = 0;  ///< Unique for the gateway's incarnation.
  CommandVerb verb = CommandVerb::wake;
  std::vector<ModelId> models;     ///< Empty: every model.
  std::vector<ActorName> workers;  ///< Empty: where it is best (load, wake, fork), or wherever it is.
  std::vector<ActorName> sources;  ///< Of fork; empty: wherever the model is active.
  Millis drain_for{0};
  AtDeadline at_deadline = AtDeadline::stay;
  bool pin = false;  ///< Load and wake: keep it there, whatever else wants room. Sleep and unload end this.
  ActorName answer_to;  ///< The gateway that holds the operator.
};
BOOST_DESCRIBE_STRUCT(Command, (),
                      (command, verb, models, workers, sources, drain_for, at_deadline, pin, answer_to))

/// Lifecycle -> gateway: what became of a command, order by order.
struct CommandEnded {
  std::uint64_t command = 0;
  ErrorCode code = ErrorCode::none;  ///< Of the first order that failed; or why there was none.
  std::string why;
  std::vector<OrderEnded> orders;
};
BOOST_DESCRIBE_STRUCT(CommandEnded, (), (command, code, why, orders))

/// Keys and values that lie in a pool for one model.
struct ModelKv {
  ModelId model;
  Bytes kv{0};      ///< Pages of its live requests,
  Bytes cached{0};  ///< and those that would give way.
};
BOOST_DESCRIBE_STRUCT(ModelKv, (), (model, kv, cached))

/// Worker -> gateways, lifecycle and placement: its memory, when that has changed, at most twice a second. Loss is
/// harmless.
struct WorkerMemory {
  ActorName worker;
  Bytes pool{0};      ///< The device's pool, and what it is used for:
  Bytes weights{0};   ///< Pages of distinct segments.
  Bytes kv{0};        ///< Pages of live requests.
  Bytes cached{0};    ///< Pages that would give way: prefix cache and spare pages.
  Bytes free{0};
  Bytes shared{0};    ///< What the tables of all models name, less what their distinct segments hold.
  Bytes host{0};      ///< Copies in host memory.
  Bytes host_max{0};
  std::vector<ModelKv> models;  ///< The parts of `kv` and `cached`, of models that have any.
};
BOOST_DESCRIBE_STRUCT(WorkerMemory, (), (worker, pool, weights, kv, cached, free, shared, host, host_max, models))

}  // namespace sangam
