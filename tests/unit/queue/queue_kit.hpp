// What the queue's tests share: short ways to say what comes in and what went out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/queue/queue_core.hpp"

namespace sangam::queue_kit {

inline const ActorName kGateway{"gateway/1"};
inline const ActorName kScheduler{"scheduler"};
inline const ActorName kWorker{"worker/1"};
inline const ActorName kOtherWorker{"worker/2"};
inline const ModelId kModel{"A"};

[[nodiscard]] inline Instant at(std::int64_t millis) {
  return Instant(Millis(millis));
}

/// A request of `prompt` prompt tokens and as many output tokens as make up `cost`.
[[nodiscard]] inline Submit submit(std::uint64_t id, std::int64_t cost = 100, const char* tenant = "t") {
  Submit s;
  s.request = RequestId(id);
  s.model = kModel;
  s.tenant = TenantId(tenant);
  s.prompt.assign(10, TokenId(7));
  s.sampling.max_tokens = Tokens(cost - 10);
  s.tokens_to = kGateway;
  return s;
}

[[nodiscard]] inline Submit best_effort(std::uint64_t id, std::int64_t cost = 100, const char* tenant = "t") {
  Submit s = submit(id, cost, tenant);
  s.service_class = ServiceClass::best_effort;
  return s;
}

[[nodiscard]] inline Submit with_deadline(std::uint64_t id, Millis ttft_in, bool requeue = false) {
  Submit s = submit(id);
  s.service_class = ServiceClass::deadline;
  s.ttft_in = ttft_in;
  s.requeue_when_late = requeue;
  return s;
}

[[nodiscard]] inline Submit again(Submit s, Attempt attempt, std::vector<TokenId> generated = {}) {
  s.attempt = attempt;
  s.generated = std::move(generated);
  return s;
}

[[nodiscard]] inline Dispatch dispatch(std::uint64_t id, Attempt attempt = 1, ActorName worker = kWorker) {
  return {RequestId(id), attempt, std::move(worker), Micros(1234)};
}

[[nodiscard]] inline RunEnded ended(std::uint64_t id, Attempt attempt = 1, ActorName worker = kWorker,
                                    std::int64_t produced = 5) {
  return {RequestId(id), attempt, std::move(worker), kModel, FinishReason::stop, Tokens(produced)};
}

/// A queue with its mesh around it, and what the last event made it say.
class Desk {
 public:
  explicit Desk(QueueOptions options = {}) : core(with_model(std::move(options))) {
    core.start(at(0), out);
    for (const ActorName& actor : {kGateway, kScheduler, kWorker, kOtherWorker})
      core.on(ActorFound{actor, Incarnation(1)}, at(0), out);
  }

  template <class M>
  void tell(std::int64_t millis, const M& message) {
    out.clear();
    core.on(message, at(millis), out);
  }
  void wake(std::int64_t millis, Timer timer) {
    out.clear();
    core.wake(timer, at(millis), out);
  }
  /// All messages of type M of the last event, to `to` where that is named.
  template <class M>
  [[nodiscard]] std::vector<M> said(const ActorName& to = {}) const {
    std::vector<M> found;
    for (const Outbox::Letter& letter : out.letters)
      if (const M* message = std::get_if<M>(&letter.message); message && (to.empty() || letter.to == to))
        found.push_back(*message);
    return found;
  }
  template <class M>
  [[nodiscard]] M only(const ActorName& to = {}) const {
    const auto found = said<M>(to);
    return found.size() == 1 ? found.front()
                             : throw std::runtime_error("expected one, got " + std::to_string(found.size()));
  }
  /// The counts, as a gateway is told them.
  [[nodiscard]] QueueStatus status(std::int64_t millis) {
    wake(millis, Timer(2));
    return only<QueueStatus>(kGateway);
  }

  QueueCore core;
  Outbox out;

 private:
  static QueueOptions with_model(QueueOptions options) {
    options.model = kModel;
    return options;
  }
};

}  // namespace sangam::queue_kit
