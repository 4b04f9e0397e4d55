// What headers say about a request: who asks, how urgently, and to which trace it belongs.
#pragma once

#include <optional>
#include <string>

#include "gateway/api/text_request.hpp"
#include "gateway/http/http_message.hpp"
#include "messages/vocabulary/message.hpp"

namespace sangam {

/// The key of `Authorization: Bearer KEY` or `x-api-key: KEY`; empty where there is none.
[[nodiscard]] std::string_view key_of(const HttpRequest& request);

/// x-slo-ttft-ms, x-llm-d-inference-ttl (a Go duration), x-sangam-class, x-sangam-when-late. They win over
/// the body's fields.
[[nodiscard]] ApiResult<Urgency> urgency_of(const HttpRequest& request, Urgency from_body);

/// "1h2m3.5s", "300ms": as Go's time.ParseDuration reads it, without a sign.
[[nodiscard]] std::optional<Millis> go_duration(std::string_view text);

/// W3C traceparent; zero where absent or malformed.
[[nodiscard]] TraceContext trace_of(const HttpRequest& request);

/// The client's x-request-id, where it is fit to be sent back: printable ASCII of at most 128 bytes.
[[nodiscard]] std::optional<std::string> request_id_of(const HttpRequest& request);

/// From this host, by nobody's order but its own: neither passed on by a proxy, behind which anyone may be, nor sent by
/// a page that is open in a browser here.
[[nodiscard]] bool comes_straight_from_here(const HttpRequest& request);

}  // namespace sangam
