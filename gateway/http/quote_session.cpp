// A session's way through a question: prepare it as a call, ask the scheduler, tell. Nothing is submitted.
#include <boost/asio/use_awaitable.hpp>

#include "gateway/api/quotes.hpp"
#include "gateway/http/http_session.hpp"

namespace sangam {
namespace {

namespace net = boost::asio;

HttpReply reply_of(const QuoteSubject& subject, const ApiResult<Quoted>& answer) {
  if (!answer) return error_reply(answer.error());
  const bool is_quote = answer->code == ErrorCode::none || answer->code == ErrorCode::cannot_be_on_time;
  if (!is_quote) {
    return error_reply(
        ApiError{answer->code, "The scheduler does not know the model '" + subject.model + "'.", "model", Millis{0}});
  }
  HttpReply reply;
  reply.body = quote_json(subject, *answer);
  return reply;
}

}  // namespace

net::awaitable<bool> HttpSession::quote(Exchange& exchange) {
  const auto prepared = co_await prepare(exchange, endpoint_of(exchange.request.body));
  if (!prepared) co_return co_await send(exchange, error_reply(prepared.error()));
  const ClientCall& call = prepared->call;
  const QuoteSubject subject{prepared->head.model, call.longest_prompt(), call.service_class};
  HttpReply reply;
  bool ended = false;
  // The waiter is told on this thread, and forgotten when the client has left.
  const RequestId question = house_.actor.ask(call, [&](const ApiResult<Quoted>& answer) {
    reply = reply_of(subject, answer);
    ended = true;
    signal_.cancel();
  });
  const bool answered = co_await ended_or_left(ended);
  house_.actor.forget_question(question);
  if (answered) co_return co_await send(exchange, std::move(reply));
  measure(exchange);
  co_return false;
}

}  // namespace sangam
