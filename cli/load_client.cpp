// Open load over Boost.Beast with one coroutine a call.
#include "cli/load_client.hpp"

#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <set>

namespace sangam {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;  // Asio's timers run on it.

constexpr Millis kTick{200};

/// Each open call is a file descriptor: up to the hard limit they may be many.
void allow_many_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

struct Connection {
  explicit Connection(asio::io_context& io) : stream(io) {}
  beast::tcp_stream stream;
  beast::flat_buffer buffer;
};

class LoadRun {
 public:
  LoadRun(const HttpBase& base, LoadSource& source, Millis timeout) : base_(base), source_(source), timeout_(timeout) {}

  Result<LoadProgress> run() {
    error_code failure;
    asio::ip::tcp::resolver resolver(io_);
    places_ = resolver.resolve(base_.host, base_.port, failure);
    if (failure) return make_error(ErrorCode::invalid_input, address() + ": " + failure.message() + "; name the mesh with --url http://HOST:PORT");
    start_ = Clock::now();
    asio::co_spawn(io_, send_all(), asio::detached);
    asio::co_spawn(io_, tick(), asio::detached);
    io_.run();
    progress_.since_start = now();
    return progress_;
  }

 private:
  using Message = http::request<http::string_body>;

  std::string address() const { return "http://" + base_.host + ":" + base_.port; }
  Micros now() const { return std::chrono::duration_cast<Micros>(Clock::now() - start_); }
  bool finished() const { return all_sent_ && progress_.ended == progress_.sent; }

  asio::awaitable<void> send_all() {
    for (std::size_t call = 0; call < source_.count() && !stopped_; ++call) {
      const auto due = start_ + source_.due(call);
      if (due > Clock::now()) {
        error_code cancelled;
        sender_.expires_at(due);
        co_await sender_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        if (stopped_) break;
      }
      progress_.behind_most = std::max(progress_.behind_most, std::chrono::duration_cast<Micros>(Clock::now() - due));
      ++progress_.sent;
      asio::co_spawn(io_, perform(call), asio::detached);
    }
    all_sent_ = true;
    if (finished()) ticker_.cancel();
  }

  asio::awaitable<void> tick() {
    while (!finished()) {
      progress_.since_start = now();
      if (!stopped_ && !source_.on_tick(progress_)) stop();
      error_code cancelled;
      ticker_.expires_after(kTick);
      co_await ticker_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }
  }

  void stop() {
    stopped_ = true;
    sender_.cancel();
    for (auto* connection : open_) connection->stream.cancel();
  }

  asio::awaitable<void> perform(std::size_t call) {
    std::optional<Error> failure;
    try {
      const auto message = message_of(source_.request(call));
      failure = co_await exchange(call, message);
    } catch (const std::exception& problem) {  // Out of memory, mostly.
      failure = make_error(ErrorCode::internal, problem.what());
    }
    source_.on_end(call, failure, now());
    ++progress_.ended;
    if (finished()) ticker_.cancel();
  }

  Message message_of(LoadRequest request) const {
    Message message(http::verb::post, request.target, 11);
    message.set(http::field::host, base_.host + ":" + base_.port);
    message.set(http::field::content_type, "application/json");
    for (const auto& [name, value] : request.headers) message.set(name, value);
    message.body() = std::move(request.body);
    message.prepare_payload();
    return message;
  }

  /// Over a kept connection, or over a new one where the other side has closed it meanwhile.
  asio::awaitable<std::optional<Error>> exchange(std::size_t call, const Message& message) {
    while (true) {
      const bool fresh = idle_.empty();
      std::unique_ptr<Connection> connection;
      if (fresh) {
        connection = std::make_unique<Connection>(io_);
      } else {
        connection = std::move(idle_.back());
        idle_.pop_back();
      }
      open_.insert(connection.get());
      bool silent = true;
      const auto failure = co_await talk(call, message, *connection, silent);
      open_.erase(connection.get());
      if (!failure) {
        if (connection->stream.socket().is_open()) idle_.push_back(std::move(connection));
        co_return std::nullopt;
      }
      const bool closed_while_idle = !fresh && silent && failure != beast::error::timeout && !stopped_;
      if (!closed_while_idle) co_return failure_of(failure);
    }
  }

  /// `silent` becomes false with the first that the other side says.
  asio::awaitable<error_code> talk(std::size_t call, const Message& message, Connection& connection, bool& silent) {
    auto& stream = connection.stream;
    stream.expires_at(start_ + source_.due(call) + timeout_);
    error_code failure;
    const auto done = [&failure] { return asio::redirect_error(asio::use_awaitable, failure); };
    if (!stream.socket().is_open()) {
      co_await stream.async_connect(places_, done());
      if (failure) co_return failure;
      stream.socket().set_option(asio::ip::tcp::no_delay(true), failure);
    }
    co_await http::async_write(stream, message, done());
    if (failure) co_return failure;
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    co_await http::async_read_header(stream, connection.buffer, parser, done());
    if (failure) co_return failure;
    silent = false;
    source_.on_status(call, int(parser.get().result_int()));
    char piece[8192];
    while (!parser.is_done()) {
      parser.get().body().data = piece;
      parser.get().body().size = sizeof piece;
      co_await http::async_read_some(stream, connection.buffer, parser, done());
      if (failure == http::error::need_buffer) failure = {};
      if (failure) co_return failure;
      source_.on_body(call, std::string_view(piece, sizeof piece - parser.get().body().size), now());
    }
    stream.expires_never();
    if (!parser.get().keep_alive()) stream.close();
    co_return failure;
  }

  Error failure_of(const error_code& failure) const {
    if (stopped_) return make_error(ErrorCode::cancelled, "broken off");
    if (failure == beast::error::timeout) {
      return make_error(ErrorCode::expired, address() + ": no whole answer within " + std::to_string(timeout_.count()) + " ms");
    }
    return make_error(ErrorCode::unavailable, address() + ": " + failure.message());
  }

  const HttpBase& base_;
  LoadSource& source_;
  Millis timeout_;
  asio::io_context io_{1};
  asio::steady_timer sender_{io_};
  asio::steady_timer ticker_{io_};
  asio::ip::tcp::resolver::results_type places_;
  Clock::time_point start_;
  std::vector<std::unique_ptr<Connection>> idle_;  ///< The one that was used last at the end.
  std::set<Connection*> open_;
  LoadProgress progress_;
  bool all_sent_ = false;
  bool stopped_ = false;
};

}  // namespace

Result<LoadProgress> run_load(const HttpBase& base, LoadSource& source, Millis timeout) {
  allow_many_connections();
  try {
    return LoadRun(base, source, timeout).run();
  } catch (const std::exception& problem) {
    return make_error(ErrorCode::internal, std::string("load client: ") + problem.what());
  }
}

}  // namespace sangam
