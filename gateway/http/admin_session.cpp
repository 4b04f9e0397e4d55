// A session's way through an operator's command: parse, send to the lifecycle, wait, tell.
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "gateway/api/admin.hpp"
#include "gateway/http/http_session.hpp"

namespace sangam {
namespace {

namespace net = boost::asio;

constexpr unsigned kConflict = 409;

/// Live requests, or a later command, stand in the way: not a fault of the server.
HttpReply reply_of(const CommandEnded& ended) {
  if (ended.code == ErrorCode::none) {
    HttpReply reply;
    reply.body = command_json(ended);
    return reply;
  }
  HttpReply reply = error_reply(error_of(ended));
  const bool stood_in_the_way = !ended.orders.empty() && ended.code == ErrorCode::unavailable;
  if (stood_in_the_way || ended.code == ErrorCode::cancelled) reply.status = kConflict;
  return reply;
}

}  // namespace

net::awaitable<bool> HttpSession::administer(Exchange& exchange) {
  auto command = house_.desk.command(exchange.request, exchange.match);
  if (!command) co_return co_await send(exchange, error_reply(command.error()));
  HttpReply reply;
  bool ended = false;
  // The waiter is told on this thread, and forgotten when the client has left.
  const std::uint64_t id = house_.actor.command(std::move(*command), [&](const CommandEnded& told) {
    reply = reply_of(told);
    ended = true;
    signal_.cancel();
  });
  const bool answered = co_await ended_or_left(ended);
  house_.actor.forget_command(id);
  if (answered) co_return co_await send(exchange, std::move(reply));
  measure(exchange);
  co_return false;
}

net::awaitable<bool> HttpSession::ended_or_left(const bool& ended) {
  constexpr Millis kLook{1'000};
  while (!ended) {
    co_await changed_within(kLook);
    if (!ended && client_has_left()) co_return false;
  }
  co_return true;
}

/// Without reading: what it sends is its next request.
bool HttpSession::client_has_left() {
  char next = 0;
  boost::system::error_code error;
  stream_.socket().non_blocking(true, error);
  const auto peeked = stream_.socket().receive(net::buffer(&next, 1), net::socket_base::message_peek, error);
  return peeked == 0 && error != net::error::would_block && error != net::error::try_again;
}

}  // namespace sangam
