// A gateway on a free port, with a scripted mesh behind it and a model whose tokens are bytes.
#pragma once

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <vector>

#include "gateway/http/open_gateway.hpp"
#include "tests/unit/gateway/raw_client.hpp"
#include "tests/unit/gateway/scripted_mesh.hpp"
#include "tests/unit/gateway/word_text.hpp"

namespace sangam::testing {

inline OfferedModel byte_model(const ServedModel& served) {
  OfferedModel model{.id = served.id,
                     .aliases = served.aliases,
                     .context = Tokens{256},
                     .ttft = served.ttft,
                     .defaults = {},
                     .text = byte_text(),
                     .broken = {}};
  if (served.id == ModelId("broken")) {
    model.text = nullptr;
    model.broken = "tokenizer.json is cut off at byte 17";
  }
  return model;
}

/// Offers "org/bytes" (alias "bytes") and "broken"; "cold/model" is offered and has no queue.
class OpenDoor {
 public:
  explicit OpenDoor(GatewayOptions options = {}) {
    options.listen = "127.0.0.1:0";
    options.models = {{.id = ModelId("org/bytes"), .folder = {}, .aliases = {"bytes"}},
                      {.id = ModelId("broken"), .folder = {}, .aliases = {}},
                      {.id = ModelId("cold/model"), .folder = {}, .aliases = {}}};
    auto opened = open_gateway(std::move(options), byte_model, mesh);
    REQUIRE_MESSAGE(opened.has_value(), (opened ? std::string() : opened.error().context));
    gateway = std::move(*opened);
    mesh.queue_and_worker(ModelId("org/bytes"));
  }
  ~OpenDoor() { gateway->stop(Millis{0}); }

  [[nodiscard]] RawClient client() const { return RawClient(gateway->port()); }

  /// One exchange on a connection of its own.
  RawReply post(const std::string& target, const std::string& body, const std::string& headers = "") const {
    RawClient one(gateway->port());
    one.post(target, body, headers);
    return one.reply();
  }
  RawReply get(const std::string& target, const std::string& headers = "") const {
    RawClient one(gateway->port());
    one.get(target, headers);
    return one.reply();
  }

  ScriptedMesh mesh;
  std::unique_ptr<Gateway> gateway;
};

inline boost::json::value parsed(const std::string& text) {
  return boost::json::parse(text);
}

/// The data of each event of a stream, comments left out.
inline std::vector<std::string> events_of(const std::string& stream) {
  std::vector<std::string> events;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find("\n\n", at);
    REQUIRE(end != std::string::npos);
    const std::string event = stream.substr(at, end - at);
    if (event.rfind(":", 0) != 0) {
      REQUIRE(event.rfind("data: ", 0) == 0);
      events.push_back(event.substr(6));
    }
    at = end + 2;
  }
  return events;
}

}  // namespace sangam::testing
