// A small blocking HTTP/1.1 client, for the commands that talk to a running mesh.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// "http://127.0.0.1:8080", taken apart.
struct HttpBase {
  std::string host;
  std::string port;
};

[[nodiscard]] Result<HttpBase> parse_http_base(std::string_view url);

struct HttpCall {
  std::string method = "GET";
  std::string target = "/";
  std::string body;  ///< JSON where not empty.
  Millis timeout{5'000};
  std::string key{};  ///< Sent as a bearer's where not empty.
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// Called with each piece of a body as it arrives.
using BodySink = std::function<void(std::string_view)>;

/// With a `sink`, the body of a 200 goes there piece by piece instead of into the answer; `timeout` then
/// bounds each wait, not the whole.
[[nodiscard]] Result<HttpAnswer> http_call(const HttpBase& base, const HttpCall& request, const BodySink& sink = {});

}  // namespace sangam
