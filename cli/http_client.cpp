// The blocking client over Boost.Beast: see the header.
#include "cli/http_client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace sangam {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

using Failure = boost::system::error_code;

/// One request over one connection. Each asynchronous call is run to its end, so that deadlines hold.
class Call {
 public:
  Call(const HttpBase& base, const HttpCall& request, const BodySink& sink)
      : base_(base), request_(request), sink_(sink), stream_(context_) {
    parser_.body_limit(boost::none);
  }

  Result<HttpAnswer> perform() {
    if (auto failure = connect()) return unreachable(failure);
    if (auto failure = send()) return unreachable(failure);
    if (auto failure = receive_header()) return unreachable(failure);
    if (auto failure = receive_body()) return unreachable(failure);
    return HttpAnswer{static_cast<int>(parser_.get().result_int()), std::move(body_)};
  }

 private:
  template <class Start>
  Failure run(Start start) {
    Failure outcome;
    stream_.expires_after(request_.timeout);
    start([&outcome](Failure failure, auto&&...) { outcome = failure; });
    context_.restart();
    context_.run();
    return outcome;
  }

  Failure connect() {
    Failure failure;
    asio::ip::tcp::resolver resolver(context_);
    const auto places = resolver.resolve(base_.host, base_.port, failure);
    if (failure) return failure;
    return run([&](auto done) { stream_.async_connect(places, done); });
  }

  Failure send() {
    http::request<http::string_body> message(http::string_to_verb(request_.method), request_.target, 11);
    message.set(http::field::host, base_.host + ":" + base_.port);
    message.set(http::field::connection, "close");
    if (!request_.key.empty()) message.set(http::field::authorization, "Bearer " + request_.key);
    if (!request_.body.empty()) message.set(http::field::content_type, "application/json");
    message.body() = request_.body;
    message.prepare_payload();
    return run([&](auto done) { http::async_write(stream_, message, done); });
  }

  Failure receive_header() {
    return run([&](auto done) { http::async_read_header(stream_, buffer_, parser_, done); });
  }

  Failure receive_body() {
    char piece[4096];
    const bool streaming = sink_ && parser_.get().result() == http::status::ok;
    while (!parser_.is_done()) {
      parser_.get().body().data = piece;
      parser_.get().body().size = sizeof piece;
      auto failure = run([&](auto done) { http::async_read_some(stream_, buffer_, parser_, done); });
      const std::string_view got(piece, sizeof piece - parser_.get().body().size);
      streaming ? sink_(got) : void(body_ += got);
      if (failure == http::error::need_buffer) failure = {};
      if (failure) return failure;
    }
    return {};
  }

  Error unreachable(const Failure& failure) const {
    return make_error(ErrorCode::unavailable, "http://" + base_.host + ":" + base_.port + request_.target + ": " +
                                                  failure.message());
  }

  const HttpBase& base_;
  const HttpCall& request_;
  const BodySink& sink_;
  asio::io_context context_{1};
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::string body_;
};

}  // namespace

Result<HttpBase> parse_http_base(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  const auto refuse = [&] {
    return make_error(ErrorCode::invalid_input,
                      "'" + std::string(url) + "' is no address of a mesh; write it like http://127.0.0.1:8080");
  };
  if (!url.starts_with(scheme)) return refuse();
  url.remove_prefix(scheme.size());
  while (url.ends_with('/')) url.remove_suffix(1);
  const auto colon = url.rfind(':');
  if (url.empty() || colon == 0 || url.find('/') != std::string_view::npos) return refuse();
  if (colon == std::string_view::npos) return HttpBase{std::string(url), "80"};
  return HttpBase{std::string(url.substr(0, colon)), std::string(url.substr(colon + 1))};
}

Result<HttpAnswer> http_call(const HttpBase& base, const HttpCall& request, const BodySink& sink) {
  try {
    return Call(base, request, sink).perform();
  } catch (const std::exception& problem) {
    return make_error(ErrorCode::internal, std::string("http client: ") + problem.what());
  }
}

}  // namespace sangam
