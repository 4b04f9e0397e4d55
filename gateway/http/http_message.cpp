// Writes heads of replies.
#include "gateway/http/http_message.hpp"

#include <boost/beast/http/status.hpp>
#include <cmath>

namespace sangam {
namespace {

std::string_view reason(unsigned status) {
  if (status == 499) return "Client Closed Request";
  return boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
}

void add(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string head_text(const HttpReply& reply, HttpFraming framing, bool keep_alive) {
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  text.append(reason(reply.status)).append("\r\n");
  if (!reply.content_type.empty()) add(text, "content-type", reply.content_type);
  for (const auto& [name, value] : reply.headers) add(text, name, value);
  if (framing == HttpFraming::length && reply.status != 204) {
    add(text, "content-length", std::to_string(reply.body.size()));
  }
  if (framing == HttpFraming::chunked) add(text, "transfer-encoding", "chunked");
  add(text, "connection", keep_alive ? "keep-alive" : "close");
  return text += "\r\n";
}

HttpReply error_reply(const ApiError& error) {
  const ErrorForm form = form_of(error.code);
  HttpReply reply{.status = form.status,
                  .headers = {{"x-should-retry", form.retry ? "true" : "false"}},
                  .body = error_json(error)};
  if (error.retry_after > Millis{0}) {
    const std::int64_t millis = error.retry_after.count();
    reply.headers.emplace_back("retry-after", std::to_string((millis + 999) / 1000));
    reply.headers.emplace_back("retry-after-ms", std::to_string(millis));
  }
  if (form.status == 401) reply.headers.emplace_back("www-authenticate", "Bearer");
  return reply;
}

HttpReply error_reply(unsigned status, std::string_view message, std::string_view code) {
  const std::string_view type = status < 500 ? "invalid_request_error" : "server_error";
  return {
      .status = status, .headers = {{"x-should-retry", "false"}}, .body = error_json(message, type, code)};
}

}  // namespace sangam
