// A session's way through a generating call: prepare, open, deliver, and cancel when the client leaves.
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "gateway/http/http_session.hpp"

namespace sangam {
namespace {

namespace net = boost::asio;
using boost::system::error_code;

constexpr std::size_t kPipelineBytes =
    64 * 1024;  // Read ahead while a call runs, to notice the client's end.

/// What stands where the work has thrown: out of memory, mostly.
ApiError unprepared() {
  return {ErrorCode::internal, "The request could not be prepared.", "", Millis{0}};
}

ApiError too_many(std::int64_t limit) {
  return {
      ErrorCode::exhausted,
      "Too many large bodies wait to be read (preparations_max " + std::to_string(limit) + "); try again.",
      "", Millis{1000}};
}

/// What the pool is asked for. A waiting coroutine holds no closure: g++ 12 destroys one twice that is made
/// inside an awaited expression.
struct PoolErrand {
  PoolErrand(net::any_io_executor home, std::function<void()> errand)
      : work(std::move(errand)), done(std::move(home), net::steady_timer::time_point::max()) {}

  std::function<void()> work;
  net::steady_timer done;  ///< Cancelled on its own executor when the work is done.
};

/// `work` writes its result into its caller's frame; what was there stays when it throws.
void do_work(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception&) {
  }
}

void send_to_pool(net::thread_pool& pool, const std::shared_ptr<PoolErrand>& errand) {
  net::post(pool, [errand, guard = net::make_work_guard(errand->done.get_executor())] {
    do_work(errand->work);
    net::post(errand->done.get_executor(), [errand] { errand->done.cancel(); });
  });
}

/// However a delivery ends, the mesh does not go on working for nobody.
class CallGuard {
 public:
  CallGuard(GatewayActor& actor, CallId call) : actor_(actor), call_(call) {}
  ~CallGuard() { actor_.close(call_); }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

 private:
  GatewayActor& actor_;
  CallId call_;
};

/// Never waited for: a head that goes out before the quote has come is without it.
void add_quote(HttpHeaders& headers, const CallAnswer& answer) {
  if (!answer.quote()) return;
  headers.emplace_back("x-sangam-ttft-earliest-ms", std::to_string(answer.quote()->earliest.count()));
  headers.emplace_back("x-sangam-ttft-latest-ms", std::to_string(answer.quote()->latest.count()));
}

std::string chunked(std::string_view piece) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
  return std::string(size).append(piece).append("\r\n");
}

}  // namespace

/// Small bodies are read at once, large ones in the pool, so that the streams of others do not stall. False,
/// with nothing done, when too many wait already.
net::awaitable<bool> HttpSession::read_body(const Exchange& exchange, std::function<void()> work) {
  const GatewayLimits& limits = house_.options.limits;
  if (std::int64_t(exchange.request.body.size()) <= limits.inline_body.count()) {
    do_work(work);
    co_return true;
  }
  if (house_.preparing >= limits.preparations_max) co_return false;
  ++house_.preparing;
  const auto errand = std::make_shared<PoolErrand>(stream_.get_executor(), std::move(work));
  send_to_pool(house_.pool, errand);
  error_code cancelled;
  co_await errand->done.async_wait(net::redirect_error(net::use_awaitable, cancelled));
  --house_.preparing;
  co_return true;
}

net::awaitable<bool> HttpSession::tokenize(Exchange& exchange) {
  HttpReply reply = error_reply(unprepared());
  std::function<void()> work = [&] { reply = house_.desk.tokens(exchange.request, exchange.match.route); };
  const bool read = co_await read_body(exchange, std::move(work));
  if (!read) reply = error_reply(too_many(house_.options.limits.preparations_max));
  co_return co_await send(exchange, std::move(reply));
}

net::awaitable<ApiResult<PreparedCall>> HttpSession::prepare(const Exchange& exchange, TextEndpoint endpoint) {
  const CallTicket ticket = house_.desk.ticket(exchange.request, exchange.id, house_.random());
  ApiResult<PreparedCall> prepared = unprepared();
  std::function<void()> work = [&] { prepared = house_.desk.prepare(exchange.request, endpoint, ticket); };
  const bool read = co_await read_body(exchange, std::move(work));
  if (!read) prepared = too_many(house_.options.limits.preparations_max);
  co_return prepared;
}

net::awaitable<bool> HttpSession::generate(Exchange& exchange, TextEndpoint endpoint) {
  using namespace net::experimental::awaitable_operators;
  ApiResult<PreparedCall> prepared = co_await prepare(exchange, endpoint);
  if (!prepared) co_return co_await send(exchange, error_reply(prepared.error()));
  const bool stream = prepared->stream;
  const std::size_t choices = prepared->call.choices();
  CallAnswer answer(std::move(prepared->head), stream, choices, std::move(prepared->echo));
  answer.changed = [this] { signal_.cancel(); };
  const CallGuard guard(house_.actor, house_.actor.open(std::move(prepared->call), answer));
  const auto outcome = co_await (watch() || deliver(exchange, answer, stream));
  if (outcome.index() == 1) co_return std::get<1>(outcome);
  measure(exchange);  // As one whose client has left.
  co_return false;
}

/// Ends when the client does. What it sends meanwhile is its next request.
net::awaitable<void> HttpSession::watch() {
  while (buffer_.size() < kPipelineBytes) {
    error_code error;
    const std::size_t bytes = co_await stream_.socket().async_read_some(
        buffer_.prepare(1024), net::redirect_error(net::use_awaitable, error));
    buffer_.commit(bytes);
    if (error) co_return;
  }
  net::steady_timer never(stream_.get_executor(), net::steady_timer::time_point::max());
  co_await never.async_wait(net::use_awaitable);
}

/// False when the time has passed first.
net::awaitable<bool> HttpSession::changed_within(Millis time) {
  error_code error;
  signal_.expires_after(time);
  co_await signal_.async_wait(net::redirect_error(net::use_awaitable, error));
  co_return error == net::error::operation_aborted;
}

net::awaitable<bool> HttpSession::deliver(Exchange& exchange, CallAnswer& answer, bool stream) {
  const Millis longest = house_.options.times.call_max;
  while (!answer.over() && !(stream && answer.admitted())) co_await changed_within(longest);
  if (answer.failure() && !(stream && answer.admitted())) {
    co_return co_await send(exchange, error_reply(*answer.failure()));
  }
  if (stream) co_return co_await deliver_stream(exchange, answer);
  HttpReply reply;
  add_quote(reply.headers, answer);
  reply.body = answer.whole();
  co_return co_await send(exchange, std::move(reply));
}

net::awaitable<bool> HttpSession::deliver_stream(Exchange& exchange, CallAnswer& answer) {
  const HttpFraming framing = exchange.request.http_1_0 ? HttpFraming::until_close : HttpFraming::chunked;
  const bool keep = exchange.request.keep_alive && framing == HttpFraming::chunked && !house_.draining;
  HttpReply head{.content_type = "text/event-stream; charset=utf-8",
                 .headers = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}},
                 .body = {}};
  add_quote(head.headers, answer);
  house_.desk.add_common(head.headers, exchange.request, exchange.id, GatewayActor::now() - exchange.began);
  bool alive = co_await write(head_text(head, framing, keep));
  bool over = false;
  while (alive && !over) {
    over = answer.over();
    const std::string ready = answer.take_stream();
    if (!ready.empty()) {
      alive = co_await write_piece(exchange, ready, framing);
    } else if (!over) {
      const bool changed = co_await changed_within(house_.options.times.ping);
      if (!changed) alive = co_await write_piece(exchange, ": ping\n\n", framing);
    }
  }
  if (alive && framing == HttpFraming::chunked) alive = co_await write("0\r\n\r\n");
  exchange.status = alive ? 200 : 499;
  measure(exchange);
  co_return alive&& keep;
}

net::awaitable<bool> HttpSession::write_piece(Exchange& exchange, std::string_view piece,
                                              HttpFraming framing) {
  exchange.sent += piece.size();
  if (framing == HttpFraming::until_close) co_return co_await write(piece);
  const std::string chunk = chunked(piece);
  co_return co_await write(chunk);
}

}  // namespace sangam
