// Drives the core on the I/O thread.
#include "gateway/http/gateway_actor.hpp"

#include <boost/asio/post.hpp>

namespace sangam {
namespace {

/// Which request a letter is about, for its trace.
RequestId request_of(const Message& message) {
  if (const auto* submit = std::get_if<Submit>(&message)) return submit->request;
  if (const auto* cancel = std::get_if<Cancel>(&message)) return cancel->request;
  return RequestId{0};
}

}  // namespace

GatewayActor::GatewayActor(const GatewayOptions& options, Metrics& metrics, PostOffice& post,
                           boost::asio::io_context& io)
    : options_(options), core_(options), metrics_(metrics), post_(post), io_(io), alarm_(io) {}

Instant GatewayActor::now() {
  return Instant(std::chrono::duration_cast<Micros>(std::chrono::steady_clock::now().time_since_epoch()));
}

void GatewayActor::attach() {
  post_.attach(options_.name, options_.incarnation, [this](EnvelopePtr letter) {
    boost::asio::post(io_, [this, letter = std::move(letter)] { deliver(letter); });
  });
}

void GatewayActor::detach(const std::string& why) {
  post_.detach(options_.name, why);
  alarm_.cancel();
}

CallId GatewayActor::open(ClientCall call, CallAnswer& answer) {
  CallId id{};
  step([&](Instant now, Outbox& out) {
    id = core_.open(std::move(call), now, out);
    answers_[id] = &answer;
  });
  return id;
}

void GatewayActor::close(CallId call) {
  answers_.erase(call);
  step([&](Instant now, Outbox& out) { core_.close(call, now, out); });
}

void GatewayActor::fail_all(const ApiError& error) {
  step([&](Instant now, Outbox& out) { core_.fail_all(error, now, out); });
}

std::uint64_t GatewayActor::command(Command command, std::function<void(const CommandEnded&)> done) {
  std::uint64_t id = 0;
  step([&](Instant, Outbox& out) {
    id = core_.commands().open(std::move(command), out);
    commands_[id] = std::move(done);
  });
  return id;
}

void GatewayActor::forget_command(std::uint64_t command) {
  commands_.erase(command);
  core_.commands().close(command);
}

void GatewayActor::tell_operators() {
  for (const CommandEnded& ended : core_.commands().take_ended()) {
    const auto found = commands_.extract(ended.command);
    if (found) found.mapped()(ended);
  }
}

RequestId GatewayActor::ask(const ClientCall& call, std::function<void(const ApiResult<Quoted>&)> done) {
  RequestId question{};
  step([&](Instant now, Outbox& out) {
    question = core_.ask(call, now, out);
    questions_[question] = std::move(done);
  });
  return question;
}

void GatewayActor::forget_question(RequestId question) {
  questions_.erase(question);
  core_.quotes().close(question);
}

void GatewayActor::tell_askers() {
  for (const QuoteEnded& ended : core_.quotes().take_ended()) {
    const auto found = questions_.extract(ended.question);
    if (found) found.mapped()(ended.answer);
  }
}

template <class Deed>
void GatewayActor::step(Deed deed) {
  deed(now(), outbox_);
  carry_out(0);
}

void GatewayActor::deliver(const EnvelopePtr& letter) {
  if (!sangam::deliver(core_, letter->message, now(), outbox_)) {
    outbox_.log(LogLevel::warning, "gateway.unexpected_letter",
                {{"from", letter->from.text()}, {"kind", std::to_string(letter->message.index())}});
  }
  carry_out(letter->id);
}

void GatewayActor::carry_out(std::uint64_t correlation) {
  for (auto& [to, message] : outbox_.letters) {
    const TraceContext trace = core_.trace_of(request_of(message));
    post_.send({.from = options_.name,
                .to = std::move(to),
                .correlation = correlation,
                .trace = trace,
                .message = std::move(message)});
  }
  for (const auto& [timer, at] : outbox_.alarms) timers_[timer] = at;
  if (!outbox_.alarms.empty()) set_alarm();
  if (options_.log) {
    for (const LogLine& line : outbox_.logs) options_.log(line);
  }
  outbox_.clear();
  for (const Measurement& measurement : core_.take_measurements()) metrics_.count(measurement);
  tell_answers();
  tell_operators();
  tell_askers();
}

void GatewayActor::tell_answers() {
  for (const CallEvent& event : core_.take_events()) {
    const auto found = answers_.find(event.call);
    if (found == answers_.end()) continue;
    CallAnswer& answer = *found->second;
    const bool last =
        std::holds_alternative<CallEnded>(event.what) || std::holds_alternative<CallFailed>(event.what);
    if (last) answers_.erase(found);
    answer.take(event.what);
  }
}

void GatewayActor::set_alarm() {
  if (timers_.empty()) return;
  Instant next = timers_.begin()->second;
  for (const auto& [timer, at] : timers_) next = std::min(next, at);
  alarm_.expires_at(std::chrono::steady_clock::time_point(next.time_since_epoch()));
  alarm_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // Moved.
    std::erase_if(timers_, [this](const auto& timer) {
      if (timer.second > now()) return false;
      core_.wake(timer.first, now(), outbox_);
      return true;
    });
    carry_out(0);
    set_alarm();
  });
}

}  // namespace sangam
