// Reading and writing on one connection.
#include "gateway/http/http_session.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdio>
#include <utility>

namespace sangam {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Parser = http::request_parser<http::string_body>;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kWriteBytes = 64 * 1024;  // Each such slice has the whole write timeout for itself.
constexpr std::size_t kLingerBytes = 16 << 20;  // Read and thrown away so that a client sees a refusal.
constexpr Millis kLingerTime{2000};

HttpRequest head_of(const Parser& parser) {
  HttpRequest request;
  const auto& message = parser.get();
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
    request.headers.emplace(std::move(name), std::string(field.value()));
  }
  request.keep_alive = message.keep_alive();
  request.http_1_0 = message.version() < 11;
  return request;
}

/// What could not be read; nothing where the client is gone or too slow.
std::optional<HttpReply> reading_refused(const error_code& error, const GatewayLimits& limits) {
  if (error == http::error::end_of_stream ||
      error.category() != http::make_error_code(http::error::bad_version).category()) {
    return std::nullopt;
  }
  HttpReply reply;
  if (error == http::error::header_limit) {
    reply = error_reply(
        431, "The request's head is larger than " + std::to_string(limits.header_max.count()) + " bytes.",
        "headers_too_large");
  } else if (error == http::error::body_limit) {
    reply = error_reply(413, "The body is larger than " + std::to_string(limits.body_max.count()) + " bytes.",
                        "body_too_large");
  } else if (error == http::error::partial_message) {
    return std::nullopt;
  } else {
    reply = error_reply(400, "This is no valid HTTP/1.1 request: " + error.message() + ".", "bad_request");
  }
  reply.close = true;
  return reply;
}

std::string new_id(std::mt19937_64& random) {
  char text[25];
  std::snprintf(text, sizeof text, "%016llx%08llx", static_cast<unsigned long long>(random()),
                static_cast<unsigned long long>(random() & 0xFFFFFFFFu));
  return text;
}

}  // namespace

HttpSession::HttpSession(net::ip::tcp::socket socket, HttpHouse& house)
    : stream_(std::move(socket)), house_(house), signal_(stream_.get_executor()) {}

void HttpSession::shut() {
  stream_.close();
}

net::awaitable<void> HttpSession::run() {
  // g++ 12 miscompiles `a && co_await b` in a condition: an awaited value gets a name first, here and below.
  while (!house_.draining) {
    const bool asked = co_await wait_for_request();
    if (!asked) break;
    const bool goes_on = co_await read_and_answer();
    if (!goes_on) break;
  }
  if (unread_) co_await linger();
  stream_.close();
}

net::awaitable<bool> HttpSession::wait_for_request() {
  if (buffer_.size() > 0) co_return true;
  error_code error;
  idle_ = true;
  stream_.expires_after(house_.options.times.idle);
  const std::size_t bytes = co_await stream_.async_read_some(buffer_.prepare(kReadBytes),
                                                             net::redirect_error(net::use_awaitable, error));
  idle_ = false;
  buffer_.commit(bytes);
  co_return !error;
}

bool HttpSession::comes_from_this_host() {
  error_code error;
  const auto peer = stream_.socket().remote_endpoint(error);
  const auto address = peer.address();
  if (error) return false;
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return net::ip::make_address_v4(net::ip::v4_mapped, address.to_v6()).is_loopback();
  return address.is_loopback();
}

/// True when the connection can take another request.
net::awaitable<bool> HttpSession::read_and_answer() {
  const GatewayLimits& limits = house_.options.limits;
  Parser parser;
  parser.header_limit(std::uint32_t(limits.header_max.count()));
  parser.body_limit(std::uint64_t(limits.body_max.count()));
  Exchange exchange{.request = {}, .match = {}, .id = new_id(house_.random)};
  exchange.match.handler = "unreadable";
  error_code error;
  stream_.expires_after(house_.options.times.read);
  co_await http::async_read_header(stream_, buffer_, parser, net::redirect_error(net::use_awaitable, error));
  exchange.began = GatewayActor::now();
  if (!error) {
    exchange.request = head_of(parser);
    exchange.request.from_this_host = comes_from_this_host();
    exchange.match = route_of(exchange.request.method, exchange.request.target);
    const bool waits = beast::iequals(exchange.request.header("expect"), "100-continue");
    auto refusal = waits ? house_.desk.doorstep(exchange.request, exchange.match) : std::nullopt;
    if (refusal) {
      refusal->close = unread_ = true;  // The body may come or not: its end cannot be told.
      co_return co_await send(exchange, std::move(*refusal));
    }
    bool there = true;
    if (waits) there = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!there) co_return false;
    stream_.expires_after(house_.options.times.read);
    co_await http::async_read(stream_, buffer_, parser, net::redirect_error(net::use_awaitable, error));
  }
  if (error) {
    auto refusal = reading_refused(error, limits);
    unread_ = refusal.has_value();
    if (refusal) co_await send(exchange, std::move(*refusal));
    co_return false;
  }
  exchange.request.body = std::move(parser.get().body());
  const bool keep = co_await answer(exchange);
  co_return keep;
}

net::awaitable<bool> HttpSession::answer(Exchange& exchange) {
  if (auto reply = house_.desk.doorstep(exchange.request, exchange.match)) {
    co_return co_await send(exchange, std::move(*reply));
  }
  const Route route = exchange.match.route;
  if (route == Route::chat) co_return co_await generate(exchange, TextEndpoint::chat);
  if (route == Route::completions) co_return co_await generate(exchange, TextEndpoint::completions);
  if (route == Route::quote) co_return co_await quote(exchange);
  if (route == Route::tokenize || route == Route::detokenize) co_return co_await tokenize(exchange);
  if (route == Route::command) co_return co_await administer(exchange);
  co_return co_await send(exchange, house_.desk.answer(exchange.match));
}

net::awaitable<bool> HttpSession::send(Exchange& exchange, HttpReply reply) {
  const bool keep = exchange.request.keep_alive && !reply.close && !house_.draining;
  exchange.status = reply.status;
  house_.desk.add_common(reply.headers, exchange.request, exchange.id, GatewayActor::now() - exchange.began);
  std::string bytes = head_text(reply, HttpFraming::length, keep);
  if (exchange.request.method != "HEAD" && reply.status != 204) {
    bytes += reply.body;
    exchange.sent = reply.body.size();
  }
  const bool written = co_await write(bytes);
  if (!written) exchange.status = 499;
  measure(exchange);
  co_return written&& keep;
}

net::awaitable<bool> HttpSession::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view slice = bytes.substr(0, kWriteBytes);
    error_code error;
    stream_.expires_after(house_.options.times.write);
    co_await net::async_write(stream_, net::buffer(slice), net::redirect_error(net::use_awaitable, error));
    if (error) co_return false;
    bytes.remove_prefix(slice.size());
  }
  co_return true;
}

/// Says that nothing more comes, and reads what the client still sends: a reset would take our last words
/// from it.
net::awaitable<void> HttpSession::linger() {
  error_code error;
  stream_.socket().shutdown(net::ip::tcp::socket::shutdown_send, error);
  stream_.expires_after(kLingerTime);
  std::size_t total = 0;
  while (!error && total < kLingerBytes) {
    buffer_.clear();
    total += co_await stream_.async_read_some(buffer_.prepare(kReadBytes),
                                              net::redirect_error(net::use_awaitable, error));
  }
}

void HttpSession::measure(Exchange& exchange) {
  if (std::exchange(exchange.measured, true)) return;
  const std::string& method = exchange.request.method;
  const bool known = method == "GET" || method == "POST" || method == "HEAD" || method == "OPTIONS";
  house_.metrics.count({.handler = std::string(exchange.match.handler),
                        .method = known ? method : "other",
                        .status = exchange.status,
                        .seconds = double((GatewayActor::now() - exchange.began).count()) / 1e6,
                        .request_bytes = exchange.request.body.size(),
                        .response_bytes = exchange.sent});
}

}  // namespace sangam
