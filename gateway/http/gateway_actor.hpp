// The shell of the core: gives it letters, instants and alarms, and carries out what it says.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "gateway/core/gateway_core.hpp"
#include "gateway/http/call_answer.hpp"
#include "gateway/metrics/metrics.hpp"
#include "messages/mesh/post_office.hpp"

namespace sangam {

/// Lives on the I/O thread, where all its verbs but attach and detach are called.
class GatewayActor {
 public:
  GatewayActor(const GatewayOptions& options, Metrics& metrics, PostOffice& post,
               boost::asio::io_context& io);

  void attach();
  void detach(const std::string& why);

  /// `answer` is told all that happens, until the call is over or closed; it lives that long.
  CallId open(ClientCall call, CallAnswer& answer);
  void close(CallId call);
  void fail_all(const ApiError& error);

  /// `done` is called once, unless it is forgotten before.
  std::uint64_t command(Command command, std::function<void(const CommandEnded&)> done);
  void forget_command(std::uint64_t command);

  /// `done` is called once, perhaps before this returns, unless it is forgotten before.
  RequestId ask(const ClientCall& call, std::function<void(const ApiResult<Quoted>&)> done);
  void forget_question(RequestId question);

  [[nodiscard]] const GatewayCore& core() const { return core_; }
  [[nodiscard]] static Instant now();

 private:
  template <class Deed>
  void step(Deed deed);
  void deliver(const EnvelopePtr& letter);
  void carry_out(std::uint64_t correlation);
  void tell_answers();
  void tell_operators();
  void tell_askers();
  void set_alarm();

  const GatewayOptions& options_;
  GatewayCore core_;
  Metrics& metrics_;
  PostOffice& post_;
  boost::asio::io_context& io_;
  boost::asio::steady_timer alarm_;
  std::map<Timer, Instant> timers_;
  Outbox outbox_;
  std::map<CallId, CallAnswer*> answers_;
  std::map<std::uint64_t, std::function<void(const CommandEnded&)>> commands_;
  std::map<RequestId, std::function<void(const ApiResult<Quoted>&)>> questions_;
};

}  // namespace sangam
