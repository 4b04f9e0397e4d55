// Every message of the mesh, and the envelope that carries one.
#pragma once

#include <array>
#include <boost/describe/class.hpp>
#include <cstdint>
#include <memory>
#include <variant>

#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/request.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

using Message = std::variant<Submit, Accepted, Refused, Started, Interrupted, Cancel, Enqueued, Withdrawn,
                             Dispatch, CannotBeOnTime, Run, TokensProduced, PrefillFinished, RunEnded,
                             InstanceReady, InstanceGone, InstanceStatus, QueueStatus, ActorFound, ActorLost, InstanceState,
                             Order, OrderEnded, Wanted, Unservable, Command, CommandEnded, WorkerMemory, HandOver,
                             HandOverEnded, RunMoved, ReserveKv, KvReserved, Telemetry, Served, ModelTable, Forecast,
                             Plan, AskQuote, Quoted>;

/// W3C Trace Context: which trace and span this message belongs to; all zero where there is none.
struct TraceContext {
  std::array<std::uint8_t, 16> trace{};
  std::array<std::uint8_t, 8> span{};
};
BOOST_DESCRIBE_STRUCT(TraceContext, (), (trace, span))

/// At most once, in order between two actors that both live. Whoever needs more asks again.
struct Envelope {
  ActorName from;
  ActorName to;
  std::uint64_t id = 0;           ///< Unique per sending node and incarnation.
  std::uint64_t correlation = 0;  ///< The id of the envelope that caused this one; 0: none.
  TraceContext trace;
  std::uint64_t epoch = 0;  ///< Of the placement under which an order was given; 0: no order.
  Message message;
};
BOOST_DESCRIBE_STRUCT(Envelope, (), (from, to, id, correlation, trace, epoch, message))

using EnvelopePtr = std::shared_ptr<const Envelope>;

}  // namespace sangam
