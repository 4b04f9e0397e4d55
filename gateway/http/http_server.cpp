// The listening socket and the list of sessions.
#include "gateway/http/http_server.hpp"

#include <netinet/tcp.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>

namespace sangam {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using tcp = net::ip::tcp;

constexpr Millis kAcceptPause{100};  // After a failed accept, usually for want of file descriptors.

Error cannot_listen(const std::string& address, const std::string& why) {
  return make_error(ErrorCode::unavailable, "cannot listen on " + address + ": " + why);
}

Result<tcp::endpoint> endpoint_of(net::io_context& io, const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos) {
    return make_error(ErrorCode::invalid_input,
                      "the address '" + address + "' has no port; write HOST:PORT, as 127.0.0.1:8000");
  }
  std::uint16_t port = 0;  // The resolver would take 99999 and wrap it.
  const char* const end = address.data() + address.size();
  const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
  if (parsed.ec != std::errc{} || parsed.ptr != end) {
    return make_error(ErrorCode::invalid_input, "the port of '" + address + "' is no number from 0 to 65535");
  }
  std::string host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) host = "0.0.0.0";
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return make_error(ErrorCode::invalid_input,
                      "the address '" + address + "' cannot be used: " + error.message());
  }
  return found.begin()->endpoint();
}

/// Small writes go out at once, and a client whose host has vanished is noticed.
void tune(tcp::socket& socket, Millis patience) {
  error_code error;
  socket.set_option(tcp::no_delay(true), error);
  socket.set_option(net::socket_base::keep_alive(true), error);
  const int millis = int(patience.count());
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, sizeof millis);
}

}  // namespace

HttpServer::HttpServer(net::io_context& io, HttpHouse& house, std::atomic<std::size_t>& connections)
    : io_(io), house_(house), connections_(connections), acceptor_(io), left_(io) {}

Result<void> HttpServer::listen(const std::string& address) {
  auto endpoint = endpoint_of(io_, address);
  if (!endpoint) return endpoint.error();
  error_code error;
  acceptor_.open(endpoint->protocol(), error);
  if (!error) acceptor_.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(*endpoint, error);
  if (error == net::error::address_in_use) {
    return cannot_listen(address,
                         "the port is in use by another process; choose another one, or port 0 for any");
  }
  if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
  if (!error) endpoint_ = acceptor_.local_endpoint(error);
  if (error) return cannot_listen(address, error.message());
  return {};
}

bool HttpServer::full() const {
  return std::int64_t(sessions_.size()) >= house_.options.limits.connections_max;
}

net::awaitable<void> HttpServer::accept_all() {
  while (acceptor_.is_open()) {
    error_code error;
    if (full()) {
      left_.expires_at(net::steady_timer::time_point::max());
      co_await left_.async_wait(net::redirect_error(net::use_awaitable, error));
      continue;
    }
    tcp::socket socket(io_);
    co_await acceptor_.async_accept(socket, net::redirect_error(net::use_awaitable, error));
    if (!error) {
      start_session(std::move(socket));
    } else if (acceptor_.is_open()) {
      if (house_.options.log)
        house_.options.log({LogLevel::warning, "gateway.accept_failed", {{"why", error.message()}}});
      net::steady_timer pause(io_, kAcceptPause);
      co_await pause.async_wait(net::use_awaitable);
    }
  }
}

void HttpServer::start_session(tcp::socket socket) {
  tune(socket, house_.options.times.write);
  sessions_.emplace_front(std::move(socket), house_);
  connections_ = sessions_.size();
  net::co_spawn(io_, run_session(sessions_.begin()), net::detached);
}

net::awaitable<void> HttpServer::run_session(std::list<HttpSession>::iterator session) {
  try {
    co_await session->run();
  } catch (const std::exception& e) {  // Out of memory, mostly: this connection ends, the others serve on.
    if (house_.options.log)
      house_.options.log({LogLevel::error, "gateway.session_failed", {{"why", e.what()}}});
  }
  sessions_.erase(session);
  connections_ = sessions_.size();
  left_.cancel();
}

void HttpServer::drain() {
  error_code error;
  house_.draining = true;
  acceptor_.close(error);
  left_.cancel();
  for (HttpSession& session : sessions_) {
    if (session.idle()) session.shut();
  }
}

net::awaitable<bool> HttpServer::emptied_within(Millis time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!sessions_.empty() && std::chrono::steady_clock::now() < until) {
    error_code error;
    left_.expires_at(until);
    co_await left_.async_wait(net::redirect_error(net::use_awaitable, error));
  }
  co_return sessions_.empty();
}

void HttpServer::shut_all() {
  for (HttpSession& session : sessions_) session.shut();
}

}  // namespace sangam
