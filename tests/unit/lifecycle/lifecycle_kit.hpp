// A life cycle under test, with workers and models to speak of.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/lifecycle/lifecycle_core.hpp"

namespace sangam {

inline const ActorName kOne{"worker/1"};
inline const ActorName kTwo{"worker/2"};
inline const ActorName kGateway{"gateway/1"};
inline const ModelId kA{"A"};
inline const ModelId kB{"B"};
inline const ModelId kC{"C"};

inline Instant at(std::int64_t millis) {
  return Instant(Millis(millis));
}

inline InstanceState state(const ModelId& model, const ActorName& worker, Residency residency, std::int64_t live = 0) {
  InstanceState s;
  s.worker = worker;
  s.model = model;
  s.incarnation = Incarnation{7};
  s.residency = s.target = residency;
  s.live = live;
  s.weights = Bytes{100};
  s.missing = residency == Residency::active ? Bytes{0} : Bytes{100};
  return s;
}

inline WorkerMemory memory(const ActorName& worker, std::int64_t free) {
  WorkerMemory m;
  m.worker = worker;
  m.pool = Bytes{1000};
  m.free = Bytes{free};
  return m;
}

inline Command command(std::uint64_t id, CommandVerb verb, std::vector<ModelId> models = {}) {
  Command c;
  c.command = id;
  c.verb = verb;
  c.models = std::move(models);
  c.answer_to = kGateway;
  return c;
}

inline LifecycleOptions with_epoch(LifecycleOptions options) {
  options.incarnation = Incarnation{5};
  return options;
}

/// The core, and what the last event made it say.
class Stage {
 public:
  explicit Stage(LifecycleOptions options = {}) : core(with_epoch(std::move(options))) {}

  template <class M>
  void tell(std::int64_t millis, const M& message) {
    out.clear();
    core.on(message, at(millis), out);
  }
  void wake(std::int64_t millis) {
    out.clear();
    core.wake(Timer{1}, at(millis), out);
  }
  template <class M>
  std::vector<std::pair<ActorName, M>> said() const {
    std::vector<std::pair<ActorName, M>> messages;
    for (const auto& letter : out.letters) {
      if (const auto* message = std::get_if<M>(&letter.message)) messages.emplace_back(letter.to, *message);
    }
    return messages;
  }
  /// The only order that was given.
  std::pair<ActorName, Order> order() const {
    const auto orders = said<Order>();
    REQUIRE(orders.size() == 1);
    return orders.front();
  }
  void end(std::int64_t millis, const std::pair<ActorName, Order>& given, ErrorCode code = ErrorCode::none) {
    OrderEnded ended;
    ended.operation = given.second.operation;
    ended.worker = given.first;
    ended.model = given.second.model;
    ended.incarnation = given.second.incarnation;
    ended.code = code;
    if (code != ErrorCode::none) ended.why = "because";
    tell(millis, ended);
  }
  Instant alarm() const { return out.alarms.empty() ? Instant::max() : out.alarms.back().at; }

  LifecycleCore core;
  Outbox out;
};

}  // namespace sangam
