// What clients are told about the time of a first token.
#pragma once

#include <string>
#include <string_view>

#include "gateway/api/text_request.hpp"
#include "messages/vocabulary/telemetry.hpp"

namespace sangam {

/// A question looks like the request that it is about: with `messages` it is a chat.
[[nodiscard]] TextEndpoint endpoint_of(std::string_view body);

/// What the question was about, as the answer repeats it.
struct QuoteSubject {
  std::string model;  ///< As the client spelled it.
  Tokens prompt{0};
  ServiceClass service_class = ServiceClass::normal;
};

/// {"object": "deadline.quote", "model", "class", "prompt_tokens", "earliest_ms", "latest_ms", "coverage", "feasible",
/// "feasible_in_ms"}. The interval is null while too little has been seen for one. `feasible_in_ms` is 0 for what is
/// feasible now, null where nobody knows.
[[nodiscard]] std::string quote_json(const QuoteSubject& subject, const Quoted& quoted);

}  // namespace sangam
