// All clients and their gateway in one: sends each request of a trace when it arrives, sends again what was
// interrupted, and tells the oracle what came of them.
#pragma once

#include <cstdint>
#include <vector>

#include "messages/vocabulary/outbox.hpp"
#include "sim/report/record.hpp"
#include "sim/trace/trace.hpp"
#include "sim/world/journal.hpp"
#include "sim/world/world.hpp"

namespace sangam::sim {

struct ClientOptions {
  ActorName name{"gateway/1"};
  std::vector<ModelId> models;  ///< By the trace's app.
  ServiceClass service_class = ServiceClass::deadline;
  bool requeue_when_late = false;
  std::vector<Slo> objectives;  ///< By the trace's app; where it is 0 or missing, the published one of first tokens, and ours.
  double slo_factor = 1.0;  ///< Of these.
  Tokens max_tokens{1024};  ///< That a request allows; more where its answer is longer.
  std::vector<ActorName> served_hearers;
};

class Clients final : public Inhabitant {
 public:
  /// Trace and journal outlive it; the journal has a place for each request.
  Clients(ClientOptions options, const Trace& trace, Journal& journal);

  void start(Instant now, Outbox& out);
  void hear(const Message& message, Instant now, Outbox& out) override;
  void wake(Timer timer, Instant now, Outbox& out) override;

  void on(const Refused& refused, Instant now, Outbox& out);
  void on(const Interrupted& interrupted, Instant now, Outbox& out);
  void on(const TokensProduced& tokens, Instant now, Outbox& out);

 private:
  void submit(RequestId request, Attempt attempt, Instant now, Outbox& out);
  void end(RequestId request, ErrorCode code);

  ClientOptions options_;
  const Trace& trace_;
  Journal& journal_;
  std::size_t next_ = 0;
  std::vector<Attempt> attempts_;
  std::vector<ServedRequest> served_;
};

}  // namespace sangam::sim
