// One connection: reads requests one after the other, answers each, and notices when the client leaves.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <functional>
#include <optional>
#include <random>

#include "gateway/http/front_desk.hpp"

namespace sangam {

/// What all sessions share. Everything is used on the I/O thread only, except where it says otherwise.
struct HttpHouse {
  const GatewayOptions& options;
  FrontDesk& desk;
  GatewayActor& actor;
  Metrics& metrics;
  boost::asio::thread_pool& pool;  ///< Prepares large bodies.
  std::mt19937_64 random;          ///< Ids and the seeds of requests that name none.
  std::int64_t preparing = 0;      ///< Bodies in the pool, at most preparations_max.
  bool draining = false;           ///< No further request on any connection.
};

class HttpSession {
 public:
  HttpSession(boost::asio::ip::tcp::socket socket, HttpHouse& house);

  /// Until the connection ends.
  boost::asio::awaitable<void> run();

  /// Between two requests.
  [[nodiscard]] bool idle() const { return idle_; }
  /// Ends the connection at once; what runs on it is cancelled.
  void shut();

 private:
  /// One request and what is known of its reply.
  struct Exchange {
    HttpRequest request;
    RouteMatch match;
    std::string id;
    Instant began{};
    unsigned status = 499;  ///< Until it is known: the client has left.
    std::size_t sent = 0;   ///< Bytes of the reply's body.
    bool measured = false;
  };
  struct Framed {
    HttpFraming framing;
    bool keep;
  };

  boost::asio::awaitable<bool> wait_for_request();
  boost::asio::awaitable<bool> read_and_answer();
  [[nodiscard]] bool comes_from_this_host();
  boost::asio::awaitable<bool> answer(Exchange& exchange);
  boost::asio::awaitable<bool> generate(Exchange& exchange, TextEndpoint endpoint);
  boost::asio::awaitable<bool> tokenize(Exchange& exchange);
  boost::asio::awaitable<bool> administer(Exchange& exchange);
  boost::asio::awaitable<bool> quote(Exchange& exchange);
  /// False when the client has left before `ended` became true; whoever sets it cancels `signal_`.
  boost::asio::awaitable<bool> ended_or_left(const bool& ended);
  [[nodiscard]] bool client_has_left();
  boost::asio::awaitable<ApiResult<PreparedCall>> prepare(const Exchange& exchange, TextEndpoint endpoint);
  boost::asio::awaitable<bool> read_body(const Exchange& exchange, std::function<void()> work);
  boost::asio::awaitable<bool> deliver(Exchange& exchange, CallAnswer& answer, bool stream);
  boost::asio::awaitable<bool> deliver_stream(Exchange& exchange, CallAnswer& answer);
  boost::asio::awaitable<void> watch();
  boost::asio::awaitable<bool> changed_within(Millis time);
  boost::asio::awaitable<bool> send(Exchange& exchange, HttpReply reply);
  boost::asio::awaitable<bool> write_piece(Exchange& exchange, std::string_view piece, HttpFraming framing);
  boost::asio::awaitable<bool> write(std::string_view bytes);
  boost::asio::awaitable<void> linger();
  void measure(Exchange& exchange);

  boost::beast::tcp_stream stream_;
  HttpHouse& house_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer signal_;  ///< Cancelled when the answer has changed.
  bool idle_ = false;
  bool unread_ = false;  ///< The client may still be sending what was refused.
};

}  // namespace sangam
