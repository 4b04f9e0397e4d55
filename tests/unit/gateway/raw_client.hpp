// An HTTP client that sends exactly the bytes it is told to, and reads replies one after the other.
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <map>
#include <string>

namespace sangam::testing {

struct RawReply {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;                            ///< Without chunk sizes.
  bool whole = false;                          ///< Its end has been seen.
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) : socket_(io_) {
    socket_.open(boost::asio::ip::tcp::v4());
    if (receive_buffer > 0) socket_.set_option(boost::asio::socket_base::receive_buffer_size(receive_buffer));
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    const timeval hang{20, 0};  // A test that waits longer has failed.
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof hang);
  }

  void send(std::string_view bytes) {
    boost::system::error_code error;
    boost::asio::write(socket_, boost::asio::buffer(bytes), error);
  }
  void get(const std::string& target, const std::string& headers = "") {
    request("GET", target, "", headers);
  }
  void post(const std::string& target, const std::string& body, const std::string& headers = "") {
    request("POST", target, body, headers + "Content-Type: application/json\r\n");
  }
  void request(const std::string& method, const std::string& target, const std::string& body,
               const std::string& headers) {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: test\r\n" + headers;
    if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    send(text + "\r\n" + body);
  }

  /// The next reply in full. `has_body` is false after HEAD.
  RawReply reply(bool has_body = true) {
    RawReply reply = head();
    if (!has_body || reply.status == 204 || reply.status == 100) return reply.whole = true, reply;
    if (reply.headers.contains("transfer-encoding")) {
      while (next_chunk(reply)) {
      }
    } else if (reply.headers.contains("content-length")) {
      const std::size_t size = std::stoul(reply.headers["content-length"]);
      while (pending_.size() < size && fill()) {
      }
      reply.whole = pending_.size() >= size;
      reply.body = take(std::min(size, pending_.size()));
    } else {
      while (fill()) {
      }
      reply.body = take(pending_.size());
      reply.whole = true;
    }
    return reply;
  }
  /// Status line and headers; the body is still to come.
  RawReply head() {
    RawReply reply;
    while (pending_.find("\r\n\r\n") == std::string::npos) {
      if (!fill()) return reply;
    }
    std::string text = take(pending_.find("\r\n\r\n") + 4);
    reply.status = std::stoi(text.substr(9, 3));
    for (std::size_t at = text.find("\r\n") + 2; at + 2 < text.size();) {
      const std::size_t end = text.find("\r\n", at);
      const std::size_t colon = text.find(": ", at);
      std::string name = text.substr(at, colon - at);
      for (char& c : name) c = char(std::tolower(c));
      reply.headers[name] = text.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    return reply;
  }
  /// Appends the next chunk to the body. False after the last one.
  bool next_chunk(RawReply& reply) {
    while (pending_.find("\r\n") == std::string::npos) {
      if (!fill()) return false;
    }
    const std::size_t size = std::stoul(take(pending_.find("\r\n") + 2), nullptr, 16);
    while (pending_.size() < size + 2) {
      if (!fill()) return false;
    }
    reply.body += take(size);
    take(2);
    reply.whole = size == 0;
    return size > 0;
  }
  /// True when the other side has closed and nothing more is there.
  bool closed() { return pending_.empty() && !fill(); }
  void close() { socket_.close(); }
  void reset() {
    socket_.set_option(boost::asio::socket_base::linger(true, 0));
    socket_.close();
  }

 private:
  bool fill() {
    char bytes[4096];
    const ssize_t count = ::recv(socket_.native_handle(), bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    pending_.append(bytes, std::size_t(count));
    return true;
  }
  std::string take(std::size_t size) {
    std::string bytes = pending_.substr(0, size);
    pending_.erase(0, size);
    return bytes;
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
  std::string pending_;
};

}  // namespace sangam::testing
