// Accepts connections and keeps count of them.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>
#include <string>

#include "gateway/http/http_session.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Used on the I/O thread, `listen` apart.
class HttpServer {
 public:
  HttpServer(boost::asio::io_context& io, HttpHouse& house, std::atomic<std::size_t>& connections);

  /// "HOST:PORT" or "[IPV6]:PORT".
  [[nodiscard]] Result<void> listen(const std::string& address);
  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const { return endpoint_; }

  boost::asio::awaitable<void> accept_all();
  /// Closes the door and idle connections; the others end with their present request.
  void drain();
  /// Waits until no connection is left, at most so long. False when there still is one.
  boost::asio::awaitable<bool> emptied_within(Millis time);
  void shut_all();

 private:
  void start_session(boost::asio::ip::tcp::socket socket);
  boost::asio::awaitable<void> run_session(std::list<HttpSession>::iterator session);
  [[nodiscard]] bool full() const;

  boost::asio::io_context& io_;
  HttpHouse& house_;
  std::atomic<std::size_t>& connections_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint endpoint_;
  std::list<HttpSession> sessions_;
  boost::asio::steady_timer left_;  ///< Cancelled whenever a session has ended.
};

}  // namespace sangam
