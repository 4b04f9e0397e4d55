// What a gateway is told at its start: where to listen, which models to offer, whose keys to trust, and
// every bound that it keeps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/outbox.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// A model that clients may name. The gateway reads texts only (tokenizer, template, defaults), no weights.
struct ServedModel {
  ModelId id;
  std::filesystem::path folder;      ///< As Hugging Face lays it out.
  std::vector<std::string> aliases;  ///< Other names that clients may use.
  Tokens context{0};                 ///< Prompt and output together; 0: as config.json says.
  Millis ttft{0};  ///< Time to first token that is promised by default; 0: no promise, normal class.
};

/// Whoever shows `key` acts as `tenant`. No keys at all: the gateway is open and knows one tenant, "default".
struct ApiKey {
  std::string key;
  TenantId tenant;
  std::int64_t requests_per_minute =
      0;                        ///< Of the tenant, over all its keys (the largest counts); 0: no limit.
  Tokens tokens_per_minute{0};  ///< Prompt and output; 0: no limit.
  bool admin = false;           ///< An operator's: opens /admin, /sleep and /wake_up.
};

struct GatewayLimits {
  Bytes body_max{8 << 20};              ///< Larger bodies: 413.
  Bytes header_max{16 << 10};           ///< Request line and headers; larger: 431.
  std::int64_t connections_max = 2048;  ///< Further ones wait in the kernel's backlog.
  std::int64_t calls_max = 1024;       ///< Generating calls at once, over all connections; further ones: 503.
  std::int64_t choices_max = 64;       ///< Prompts times n of one call.
  Attempt attempts_max = 5;            ///< Tries at one choice, the first included.
  Bytes inline_body{16 << 10};         ///< Larger bodies are parsed and tokenized beside the I/O thread.
  std::int64_t preparations_max = 64;  ///< Bodies that may wait for that; further ones: 503.
};

struct GatewayTimes {
  Millis ping{15'000};               ///< A comment line on a silent stream this often.
  Millis read{30'000};               ///< For the head of a request, and again for its body.
  Millis write{30'000};              ///< A client that takes nothing for this long is gone.
  Millis idle{75'000};               ///< A connection kept alive without a request.
  Millis accept_within{10'000};      ///< For a queue's answer to a submission.
  Millis quote_within{2'000};        ///< For the scheduler's answer to a question.
  Millis queue_back_within{60'000};  ///< For a lost queue's return while a request holds.
  Millis call_max{3'600'000};        ///< The longest life of a call.
};

/// Of one mesh: places have 8 bits of a request's id.
inline constexpr std::uint32_t kGatewaysMax = 256;

struct GatewayOptions {
  ActorName name{"gateway/1"};
  Incarnation incarnation{1};
  std::uint32_t place = 0;  ///< Among the gateways of the mesh, below kGatewaysMax; no two have the same.
  std::string listen = "127.0.0.1:8000";  ///< HOST:PORT, [IPV6]:PORT; port 0: any free one.
  std::vector<ServedModel> models;
  std::vector<ApiKey> keys;
  std::string cors_origin = "*";  ///< Access-Control-Allow-Origin; empty: no CORS headers.
  std::string version = "0.1.0";
  std::function<void(const LogLine&)> log;  ///< Called on the gateway's threads; empty: nothing is logged.
  GatewayLimits limits;
  GatewayTimes times;
};

}  // namespace sangam
