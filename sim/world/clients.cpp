// The trace in, the journal out.
#include "sim/world/clients.hpp"

#include <algorithm>
#include <cmath>

namespace sangam::sim {
namespace {

constexpr Timer kArrival{1};
constexpr Timer kTell{2};
constexpr Millis kTellEvery{500};

double micros_of(Instant at) { return double(at.time_since_epoch().count()); }

}  // namespace

Clients::Clients(ClientOptions options, const Trace& trace, Journal& journal)
    : options_(std::move(options)), trace_(trace), journal_(journal), attempts_(trace.requests.size(), 1) {
  for (std::size_t i = 0; i < trace_.requests.size(); ++i) {
    const TraceRequest& request = trace_.requests[i];
    JournalEntry& entry = journal_.of(RequestId(i + 1));
    entry.app = request.app;
    entry.input = std::max(request.input, Tokens(1));
    entry.output = std::max(request.output, Tokens(1));
    entry.arrival = double(request.arrival.count());
    const Slo own = request.app < options_.objectives.size() ? options_.objectives[request.app] : Slo{};
    const Millis ttft = own.ttft > Millis(0) ? own.ttft : ttft_slo_of(entry.input);
    const Millis tpot = own.tpot > Millis(0) ? own.tpot : kTpotSlo;
    entry.ttft_slo = options_.slo_factor * 1000.0 * double(ttft.count());
    entry.tpot_slo = options_.slo_factor * 1000.0 * double(tpot.count());
  }
}

void Clients::start(Instant now, Outbox& out) {
  if (!trace_.requests.empty()) out.set_timer(kArrival, std::max(now, Instant(trace_.requests[0].arrival)));
  if (!options_.served_hearers.empty()) out.set_timer(kTell, now + kTellEvery);
}

void Clients::hear(const Message& message, Instant now, Outbox& out) {
  (void)deliver(*this, message, now, out);
}

void Clients::wake(Timer timer, Instant now, Outbox& out) {
  if (timer == kTell) {
    for (const ActorName& hearer : options_.served_hearers) out.send(hearer, Served{options_.name, served_});
    served_.clear();
    out.set_timer(kTell, now + kTellEvery);
    return;
  }
  while (next_ < trace_.requests.size() && Instant(trace_.requests[next_].arrival) <= now) {
    ++next_;
    submit(RequestId(next_), 1, now, out);
  }
  if (next_ < trace_.requests.size()) out.set_timer(kArrival, Instant(trace_.requests[next_].arrival));
}

void Clients::submit(RequestId request, Attempt attempt, Instant now, Outbox& out) {
  const JournalEntry& entry = journal_.of(request);
  Submit submit;
  submit.request = request;
  submit.attempt = attempt;
  submit.model = options_.models.at(entry.app);
  submit.tenant = TenantId("app-" + std::to_string(entry.app));
  submit.service_class = options_.service_class;
  submit.ttft_in = Millis(std::int64_t((entry.arrival + entry.ttft_slo - micros_of(now)) / 1000.0));
  submit.requeue_when_late = options_.requeue_when_late;
  submit.prompt.resize(std::size_t(entry.input.count()));
  submit.generated.resize(std::size_t(entry.produced));
  submit.sampling.max_tokens = std::max(options_.max_tokens, entry.output);
  submit.tokens_to = options_.name;
  const ActorName queue = queue_of(submit.model);
  out.send(queue, std::move(submit));
}

void Clients::on(const Interrupted& interrupted, Instant now, Outbox& out) {
  Attempt& attempt = attempts_.at(std::size_t(interrupted.request) - 1);
  if (interrupted.attempt != attempt) return;
  submit(interrupted.request, ++attempt, now, out);
}

void Clients::on(const Refused& refused, Instant, Outbox&) { end(refused.request, refused.code); }

/// A run that met an instance which was leaving is sent again, as the real gateway does.
void Clients::on(const TokensProduced& tokens, Instant now, Outbox& out) {
  if (tokens.finish == FinishReason::none || tokens.attempt != attempts_.at(std::size_t(tokens.request) - 1)) return;
  if (tokens.finish == FinishReason::failed && tokens.code == ErrorCode::unavailable) {
    return submit(tokens.request, ++attempts_[std::size_t(tokens.request) - 1], now, out);
  }
  end(tokens.request, tokens.finish == FinishReason::length ? ErrorCode::none : ErrorCode::internal);
}

void Clients::end(RequestId request, ErrorCode code) {
  JournalEntry& entry = journal_.of(request);
  if (entry.ended) return;
  entry.ended = true;
  entry.code = code;
  if (code != ErrorCode::none) entry.late = entry.output.count();
  if (options_.served_hearers.empty()) return;
  ServedRequest served;
  served.model = options_.models.at(entry.app);
  served.input = entry.input;
  served.output = entry.output;
  served.ttft = Micros(std::llround(std::max(entry.first - entry.arrival, 0.0)));
  if (entry.produced > 1) served.tpot = Micros(std::llround((entry.last - entry.first) / double(entry.produced - 1)));
  served.ttft_slo = Millis(std::llround(entry.ttft_slo / 1000.0));
  served.tpot_slo = Millis(std::llround(entry.tpot_slo / 1000.0));
  served.late = Tokens(entry.late);
  served.code = code;
  served_.push_back(std::move(served));
}

}  // namespace sangam::sim
