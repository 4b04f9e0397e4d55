// A request and a reply as the routes see them: no sockets, no library types.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/api/errors.hpp"

namespace sangam {

struct HttpRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  ///< Names in lower case; the first of each counts.
  std::string body;
  bool keep_alive = true;
  bool http_1_0 = false;  ///< No chunked replies.
  bool from_this_host = false;

  /// Empty where absent.
  [[nodiscard]] std::string_view header(std::string_view name) const {
    const auto found = headers.find(std::string(name));
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpReply {
  unsigned status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers{};
  std::string body{};
  bool close = false;  ///< The connection cannot be used any more.
};

/// How the body's end is found.
enum class HttpFraming { length, chunked, until_close };

/// Status line and headers.
[[nodiscard]] std::string head_text(const HttpReply& reply, HttpFraming framing, bool keep_alive);
[[nodiscard]] HttpReply error_reply(const ApiError& error);
/// For statuses that have no ErrorCode.
[[nodiscard]] HttpReply error_reply(unsigned status, std::string_view message, std::string_view code);

}  // namespace sangam
