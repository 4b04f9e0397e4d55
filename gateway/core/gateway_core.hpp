// The gateway as an actor: submits every choice of a call, follows it through losses, turns its tokens into
// text, and cancels what nobody waits for. Same events at the same instants, same messages.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/core/choice_text.hpp"
#include "gateway/core/client_call.hpp"
#include "gateway/core/command_desk.hpp"
#include "gateway/core/fleet.hpp"
#include "gateway/core/quote_desk.hpp"
#include "gateway/core/rate_limits.hpp"
#include "gateway/core/served_desk.hpp"
#include "gateway/options.hpp"
#include "messages/vocabulary/outbox.hpp"

namespace sangam {

/// A choice is named in the mesh by a RequestId for life, and by an attempt for one try. When a try is lost,
/// it is submitted again with all tokens so far, one attempt higher; letters of older attempts are ignored.
class GatewayCore {
 public:
  explicit GatewayCore(const GatewayOptions& options);

  /// Begins a call. What becomes of it, refusal included, is told by events under the id.
  CallId open(ClientCall call, Instant now, Outbox& out);
  /// When would the first token of such a call come (of its longest prompt)? Answered once by `quotes()` under the id.
  RequestId ask(const ClientCall& call, Instant now, Outbox& out);
  /// The client has left: nothing more is told, and the mesh is told to stop. Unknown ids are no error.
  void close(CallId call, Instant now, Outbox& out);
  /// Ends every call with `error`; for a shell that stops.
  void fail_all(const ApiError& error, Instant now, Outbox& out);

  void on(const Accepted& accepted, Instant now, Outbox& out);
  void on(const Refused& refused, Instant now, Outbox& out);
  void on(const Started& started, Instant now, Outbox& out);
  void on(const TokensProduced& produced, Instant now, Outbox& out);
  void on(const Interrupted& interrupted, Instant now, Outbox& out);
  void on(const ActorFound& found, Instant now, Outbox& out);
  void on(const ActorLost& lost, Instant now, Outbox& out);
  void on(const InstanceReady& instance, Instant, Outbox&) { fleet_.ready(instance); }
  void on(const InstanceGone& gone, Instant now, Outbox& out);
  void on(const InstanceStatus& status, Instant, Outbox&) { fleet_.status(status); }
  void on(const InstanceState& state, Instant, Outbox&) { fleet_.state(state); }
  void on(const WorkerMemory& memory, Instant, Outbox&) { fleet_.memory(memory); }
  void on(const CommandEnded& ended, Instant, Outbox&) { commands_.ended(ended); }
  void on(const QueueStatus& status, Instant, Outbox&) { fleet_.status(status); }
  void on(const Telemetry& telemetry, Instant, Outbox&) { fleet_.telemetry(telemetry); }
  void on(const ModelTable& table, Instant, Outbox&) { fleet_.table(table); }
  void on(const Forecast& forecast, Instant, Outbox&) { fleet_.forecast(forecast); }
  void on(const Quoted& quoted, Instant now, Outbox& out);
  void wake(Timer timer, Instant now, Outbox& out);

  /// In the order in which they happened; the caller takes them after each call into the core.
  [[nodiscard]] std::vector<CallEvent> take_events() { return std::exchange(events_, {}); }
  [[nodiscard]] std::vector<Measurement> take_measurements() { return std::exchange(measurements_, {}); }

  [[nodiscard]] const MeshView& fleet() const { return fleet_; }
  [[nodiscard]] CommandDesk& commands() { return commands_; }
  [[nodiscard]] QuoteDesk& quotes() { return quotes_; }
  [[nodiscard]] std::size_t calls() const { return calls_.size(); }
  [[nodiscard]] RateState rate_state(const TenantId& tenant, Instant now) const {
    return rates_.state_of(tenant, now);
  }
  /// The trace that a request belongs to; zero for requests that have ended.
  [[nodiscard]] TraceContext trace_of(RequestId request) const;

 private:
  /// In which the first token is to be expected.
  struct Window {
    Instant earliest{};
    Instant latest{};
  };
  struct Choice {
    RequestId request{};
    Attempt attempt = 0;
    ActorName worker{};  ///< Where the current attempt runs; empty: nowhere yet.
    bool accepted = false;
    bool ended = false;
    std::vector<TokenId> generated{};
    ChoiceText text;
    Tokens cached{0};
    Instant accepted_at{}, started_at{}, first_at{}, last_at{};
    std::optional<Window> quote = {};  ///< The first one.
    bool started = false;  ///< In any attempt.
    bool begun = false;    ///< A token has come.
  };
  struct LiveCall {
    CallId id{};
    ClientCall call;
    std::vector<Choice> choices;
    Instant opened{};
    Instant ends_by{};
    std::optional<Instant> queue_lost;
    bool admitted = false;
    std::size_t ended = 0;
    std::optional<Instant> alarm;  ///< Its entry in alarms_.
  };
  struct Place {
    LiveCall* live;
    Choice* choice;
  };

  void submit(LiveCall& live, Choice& choice, Instant now, Outbox& out);
  void submit_again(LiveCall& live, Choice& choice, const std::string& why, Instant now, Outbox& out);
  /// Where the model's queue is not there.
  [[nodiscard]] std::optional<ApiError> absence(const ModelId& model) const;
  [[nodiscard]] std::optional<ApiError> objection(const ClientCall& call, Instant now);
  void read_tokens(Place at, const TokensProduced& produced, Instant now, Outbox& out);
  bool take_token(Place at, const TokensProduced& produced, std::size_t index, TextDelta& delta);
  void end_choice(Place at, FinishReason finish, Instant now, Outbox& out);
  void fail(LiveCall& live, ApiError error, Instant now, Outbox& out);
  void cancel_open_choices(LiveCall& live, ErrorCode why, Instant now, Outbox& out);
  void erase(LiveCall& live, Instant now);
  void accept(Place at, Instant now);
  void worker_gave_up(Place at, const TokensProduced& produced, Instant now, Outbox& out);
  void time_step(Place at, std::size_t fresh, Instant now);
  void measure(const LiveCall& live, const Choice& choice, std::string finish, Instant now);
  void note_served(const LiveCall& live, const Choice& choice, ErrorCode code, Instant now, Outbox& out);
  void measure_quote(const LiveCall& live, const Choice& choice);
  [[nodiscard]] static Tokens prompt_of(const LiveCall& live, const Choice& choice);
  [[nodiscard]] TokenUsage usage_of(const LiveCall& live) const;

  [[nodiscard]] std::optional<ApiError> overdue(const LiveCall& live, Instant now) const;
  [[nodiscard]] Instant next_alarm(const LiveCall& live) const;
  void set_alarm(LiveCall& live, Outbox& out);

  [[nodiscard]] std::optional<Place> find(RequestId request, Attempt attempt);
  template <class Predicate>
  [[nodiscard]] std::vector<std::pair<RequestId, Attempt>> open_requests(Predicate chosen) const;
  void tell(const LiveCall& live, decltype(CallEvent::what) what) {
    events_.push_back({live.id, std::move(what)});
  }

  ActorName name_;
  GatewayLimits limits_;
  GatewayTimes times_;
  std::uint64_t next_request_;  ///< The gateway's place in 8 bits, its incarnation in 24, a counter in 32.
  std::uint64_t next_call_ = 1;
  std::map<CallId, LiveCall> calls_;
  std::unordered_map<RequestId, std::pair<CallId, std::size_t>> requests_;
  std::set<std::pair<Instant, CallId>> alarms_;
  std::optional<Instant> timer_at_;
  MeshView fleet_;
  RateLimits rates_;
  CommandDesk commands_;
  QuoteDesk quotes_;
  ServedDesk served_;
  std::vector<CallEvent> events_;
  std::vector<Measurement> measurements_;
};

}  // namespace sangam
