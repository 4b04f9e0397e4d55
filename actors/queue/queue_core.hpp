// The queue of one model: owns each request from Submit until its RunEnded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "actors/queue/admission.hpp"
#include "actors/queue/fair_order.hpp"
#include "actors/queue/queue_options.hpp"
#include "messages/vocabulary/lifecycle.hpp"
#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/request.hpp"
#include "messages/vocabulary/residency.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

class QueueCore {
 public:
  explicit QueueCore(QueueOptions options);
  QueueCore(const QueueCore&) = delete;
  QueueCore& operator=(const QueueCore&) = delete;

  void start(Instant now, Outbox& out);
  void on(const Submit& submit, Instant now, Outbox& out);
  void on(const Cancel& cancel, Instant now, Outbox& out);
  void on(const Dispatch& dispatch, Instant now, Outbox& out);
  void on(const CannotBeOnTime& verdict, Instant now, Outbox& out);
  /// To the gateway, unless the quote is of another attempt.
  void on(const Quoted& quoted, Instant now, Outbox& out);
  void on(const Unservable& verdict, Instant now, Outbox& out);
  void on(const RunEnded& end, Instant now, Outbox& out);
  void on(const RunMoved& moved, Instant now, Outbox& out);
  void on(const ActorFound& found, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

 private:
  static constexpr Timer kDue{1};
  static constexpr Timer kStatus{2};
  static constexpr Instant kNever = Instant::max();

  enum class State : std::uint8_t { waiting, running, interrupted };

  struct Entry {
    Submit submit;  ///< Prompt and generated tokens leave with Run; the gateway has them.
    State state = State::waiting;
    bool cancelled = false;                             ///< While running: the worker has been told.
    ServiceClass service_class = ServiceClass::normal;  ///< May have become lower than the submitted one.
    Place place;
    Tokens cost{0};     ///< Prompt and max_tokens: what limits and shares count.
    Tokens prefill{0};  ///< Prompt and generated tokens of this attempt.
    Instant submitted_at{};
    Instant expires_at = kNever;
    Instant due_at = kNever;    ///< The first token's deadline.
    Instant alarm_at = kNever;  ///< Its entry in alarms_.
    ActorName worker;
    Millis queued{0};  ///< Until it ran.
  };
  using Entries = std::map<RequestId, Entry>;
  using Members = std::map<ActorName, std::set<RequestId>>;

  /// Why nothing may wait any more; nothing where it may.
  [[nodiscard]] std::optional<Refusal> closed(Instant now) const;
  void admit(const Submit& submit, Instant now, Outbox& out);
  void replace(Entry& entry, const Submit& submit, Instant now, Outbox& out);
  void take_attempt(Entry& entry, const Submit& submit, Instant now);
  void let_wait(Entry& entry, Instant now);
  void leave_waiting(Entry& entry, Instant now);
  void run(Entry& entry, const Dispatch& dispatch, Instant now, Outbox& out);
  void interrupt(Entry& entry, const std::string& why, Instant now, Outbox& out);
  void cancel(Entry& entry, Instant now, Outbox& out);
  void refuse(Entry& entry, Refusal refusal, Instant now, Outbox& out);
  void too_late(Entry& entry, Refusal refusal, Instant now, Outbox& out);
  /// Refuses or lowers what must not run any more as it is; says whether it had to.
  bool overdue(Entry& entry, Instant now, Outbox& out);
  void forget(Entry& entry, Tokens used);
  void announce(const Entry& entry, Instant now, Outbox& out) const;
  /// Those whose worker was not there for us yet, when anyone appears or half a second has passed.
  void announce_held_back(Instant now, Outbox& out);
  void withdraw(RequestId request, Outbox& out) const;
  void set_alarm(Entry& entry, Instant at);
  void drop_membership(Members& members, const ActorName& actor, RequestId request);
  [[nodiscard]] Entry* waiting(RequestId request);
  /// Ends each event: promotes, moves the timer, tells of counts that fell to zero.
  void conclude(Instant now, Outbox& out);
  void send_status(Outbox& out);

  const QueueOptions options_;
  Admission admission_;
  FairOrder order_;
  Entries entries_;
  Members held_by_;     ///< Gateway to its requests.
  Members running_on_;  ///< Worker to its requests.
  std::set<ActorName> present_;
  std::set<ActorName> status_hearers_;
  std::set<RequestId> held_back_;
  std::set<std::pair<Instant, RequestId>> alarms_;
  Instant armed_ = kNever;
  std::string closed_why_;  ///< As long as the model cannot be had:
  Instant closed_until_{};
  std::int64_t running_ = 0;
  std::int64_t waiting_before_ = 0;  ///< The counts after the former event.
  std::int64_t running_before_ = 0;
  QueueStatus told_;  ///< The counts that only rise.
};

}  // namespace sangam
