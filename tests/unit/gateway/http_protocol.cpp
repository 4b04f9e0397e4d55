// HTTP itself: connections, limits, methods, keys, odd and hostile clients.
#include <doctest/doctest.h>

#include <cstdio>
#include <thread>

#include "tests/unit/gateway/open_door.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

const std::string kText = "/v1/completions";
const std::string kBody = R"({"model":"bytes","prompt":"x"})";

std::string code_of(const RawReply& reply) {
  return std::string(parsed(reply.body).at("error").at("code").as_string());
}

}  // namespace

TEST_CASE("a connection serves on after errors") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  RawClient client = door.client();
  for (int i = 0; i < 3; ++i) {
    client.post(kText, "{broken");
    CHECK(client.reply().status == 400);
    client.get("/nothing");
    CHECK(client.reply().status == 404);
    client.get(kText);
    const RawReply wrong = client.reply();
    CHECK(wrong.status == 405);
    CHECK(wrong.headers.at("allow") == "POST, OPTIONS");
    client.post(kText, kBody);
    CHECK(client.reply().status == 200);
  }
}

TEST_CASE("requests that are sent ahead are answered in order, also behind a stream") {
  OpenDoor door;
  RawClient client = door.client();
  client.post(kText, R"({"model":"bytes","prompt":"x","stream":true})");
  client.get("/version");
  client.get("/load");
  const Submit submit = door.mesh.next<Submit>();
  door.mesh.answer(submit, "abc");
  const RawReply first = client.reply();
  CHECK(events_of(first.body).back() == "[DONE]");
  CHECK(parsed(client.reply().body).as_object().contains("version"));
  CHECK(parsed(client.reply().body).at("server_load") == 0);
}

TEST_CASE("HEAD has the headers of GET and no body") {
  OpenDoor door;
  RawClient client = door.client();
  client.get("/v1/models");
  const RawReply get = client.reply();
  client.request("HEAD", "/v1/models", "", "");
  const RawReply head = client.reply(false);
  CHECK(head.status == 200);
  CHECK(head.headers.at("content-length") == get.headers.at("content-length"));
  client.get("/livez");
  CHECK(client.reply().status == 200);
}

TEST_CASE("a preflight is answered, without a key too") {
  GatewayOptions options;
  options.keys = {{.key = "secret", .tenant = TenantId("t")}};
  OpenDoor door(options);
  RawClient client = door.client();
  client.request("OPTIONS", "/v1/chat/completions", "",
                 "Origin: http://x\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: "
                 "authorization, x-foo\r\n");
  const RawReply reply = client.reply();
  CHECK(reply.status == 204);
  CHECK(reply.headers.at("access-control-allow-origin") == "*");
  CHECK(reply.headers.at("access-control-allow-methods").find("POST") != std::string::npos);
  CHECK(reply.headers.at("access-control-allow-headers") == "authorization, x-foo");
}

TEST_CASE("with keys, everything but the probes needs one") {
  GatewayOptions options;
  options.keys = {{.key = "secret", .tenant = TenantId("t"), .requests_per_minute = 1}};
  OpenDoor door(options);
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  for (const std::string path : {"/health", "/v1/health", "/ping", "/livez", "/readyz"})
    CHECK(door.get(path).status == 200);
  for (const std::string path :
       {"/", "/v1/models", "/v1/models/bytes", "/metrics", "/load", "/version", "/nothing"}) {
    CHECK(door.get(path).status == 401);
  }
  for (const std::string path : {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"}) {
    CHECK(door.post(path, kBody).status == 401);
    CHECK(door.post(path, kBody, "Authorization: Bearer wrong\r\n").status == 401);
  }
  const RawReply refused = door.get("/v1/models");
  CHECK(code_of(refused) == "invalid_api_key");
  CHECK(refused.headers.at("www-authenticate") == "Bearer");
  const RawReply good = door.post(kText, kBody, "Authorization: Bearer secret\r\n");
  CHECK(good.status == 200);
  CHECK(door.mesh.next<Submit>().tenant == TenantId("t"));
  CHECK(good.headers.at("x-ratelimit-limit-requests") == "1");
  CHECK(good.headers.at("x-ratelimit-remaining-requests") == "0");
  const RawReply limited = door.post(kText, kBody, "x-api-key: secret\r\n");
  CHECK(limited.status == 429);
  CHECK(limited.headers.contains("retry-after"));
}

TEST_CASE("large bodies, large heads and nonsense are refused in JSON, and the connection ends") {
  GatewayOptions options;
  options.limits.body_max = Bytes{1000};
  options.limits.header_max = Bytes{2000};
  OpenDoor door(options);
  const RawReply body = door.post(kText, std::string(1001, 'x'));
  CHECK(body.status == 413);
  CHECK(code_of(body) == "body_too_large");
  CHECK(body.headers.at("connection") == "close");
  const RawReply head = door.get("/livez", "X-Long: " + std::string(3000, 'x') + "\r\n");
  CHECK(head.status == 431);
  RawClient client = door.client();
  client.send("\x16\x03\x01 this is no HTTP\r\n\r\n");
  CHECK(client.reply().status == 400);
  CHECK(client.closed());
}

TEST_CASE("a body of exactly the limit passes, and a large one is prepared beside the I/O thread") {
  GatewayOptions options;
  options.limits.inline_body = Bytes{10};
  OpenDoor door(options);
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  CHECK(door.post(kText, kBody).status == 200);
  CHECK(door.post(kText, "{\"broken\":     ").status == 400);
  CHECK(parsed(door.post("/tokenize", R"({"model":"bytes","prompt":"0123456789"})").body).at("count") == 10);
  CHECK(door.post("/detokenize", "{\"broken\":     ").status == 400);
}

TEST_CASE("large bodies beyond preparations_max are refused with a time to come back") {
  GatewayOptions options;
  options.limits.inline_body = Bytes{10};
  options.limits.preparations_max = 0;
  OpenDoor door(options);
  for (const std::string path : {"/v1/completions", "/tokenize"}) {
    const RawReply reply = door.post(path, kBody);
    CHECK(reply.status == 503);
    CHECK(reply.headers.at("retry-after-ms") == "1000");
  }
}

TEST_CASE("a client that waits for 100-continue gets it, or the refusal before it has sent the body") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  RawClient client = door.client();
  client.send("POST " + kText + " HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(kBody.size()) + "\r\n\r\n");
  CHECK(client.head().status == 100);
  client.send(kBody);
  CHECK(client.reply().status == 200);
  client.send("POST " + kText +
              " HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n");
  CHECK(client.reply().status == 413);
}

TEST_CASE("an HTTP/1.0 client gets a stream without chunks that ends with the connection") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  RawClient client = door.client();
  const std::string body = R"({"model":"bytes","prompt":"x","stream":true})";
  client.send("POST " + kText + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  const RawReply reply = client.reply();
  CHECK_FALSE(reply.headers.contains("transfer-encoding"));
  CHECK(events_of(reply.body).back() == "[DONE]");
}

TEST_CASE("a chunked request body is read") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  RawClient client = door.client();
  client.send("POST " + kText + " HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.send("5\r\n" + kBody.substr(0, 5) + "\r\n");
  char size[8];
  std::snprintf(size, sizeof size, "%zx", kBody.size() - 5);
  client.send(std::string(size) + "\r\n" + kBody.substr(5) + "\r\n0\r\n\r\n");
  CHECK(client.reply().status == 200);
}

TEST_CASE("a client that sends its request too slowly is cut off") {
  GatewayOptions options;
  options.times.read = Millis{30};
  OpenDoor door(options);
  RawClient client = door.client();
  client.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 50\r\n\r\n{");
  CHECK(client.reply().status == 0);
  CHECK(client.closed());
}

TEST_CASE("a client that takes nothing is cut off and its call is cancelled") {
  GatewayOptions options;
  options.times.write = Millis{30};
  OpenDoor door(options);
  RawClient client(door.gateway->port(), 4096);
  client.post(kText, R"({"model":"bytes","prompt":"x","stream":true,"max_tokens":200,"logprobs":20})");
  const Submit submit = door.mesh.next<Submit>();
  door.mesh.accept(submit);
  // Far more than both sockets' buffers hold: the gateway has to wait for the client.
  door.mesh.tokens(submit, 0, std::string(20'000, 'a'));
  CHECK(door.mesh.next<Cancel>().request == submit.request);
}

TEST_CASE("connections beyond the limit wait until another one ends") {
  GatewayOptions options;
  options.limits.connections_max = 1;
  OpenDoor door(options);
  RawClient first = door.client();
  first.get("/livez");
  CHECK(first.reply().status == 200);
  RawClient second = door.client();
  second.get("/livez");
  first.close();
  CHECK(second.reply().status == 200);
}

TEST_CASE("models are listed by every name, with their state, and found by raw and escaped ids") {
  OpenDoor door;
  const auto listed = parsed(door.get("/v1/models").body);
  std::map<std::string, std::string> states;
  for (const auto& item : listed.at("data").as_array()) {
    states[std::string(item.at("id").as_string())] = std::string(item.at("status").as_string());
  }
  CHECK(states ==
        std::map<std::string, std::string>{
            {"broken", "broken"}, {"bytes", "ready"}, {"cold/model", "waiting"}, {"org/bytes", "ready"}});
  CHECK(parsed(door.get("/v1/models/org/bytes").body).at("id") == "org/bytes");
  CHECK(parsed(door.get("/v1/models/org%2Fbytes").body).at("id") == "org/bytes");
  CHECK(door.get("/v1/models/nobody").status == 404);
}

TEST_CASE("readiness follows queues and workers, liveness does not") {
  OpenDoor door;
  CHECK(door.get("/readyz").status == 200);
  door.mesh.tell(ActorLost{ActorName("worker/1"), Incarnation{1}, "killed"});
  const RawReply reply = door.get("/readyz");
  CHECK(reply.status == 503);
  CHECK(reply.body.find("worker") != std::string::npos);
  CHECK(door.get("/livez").status == 200);
  CHECK(door.get("/health").status == 200);
}

TEST_CASE("tokenize and detokenize are inverse, and count as the usage does") {
  OpenDoor door;
  const auto tokens =
      parsed(door.post("/tokenize", R"({"model":"bytes","prompt":"a\u00e9","return_token_strs":true})").body);
  CHECK(tokens.at("count") == 3);
  CHECK(tokens.at("tokens") == boost::json::array{97, 0xC3, 0xA9});
  CHECK(tokens.at("max_model_len") == 256);
  CHECK(tokens.at("token_strs").at(0) == "a");
  CHECK(parsed(door.post("/detokenize", R"({"model":"bytes","tokens":[97,195,169]})").body).at("prompt") ==
        "a\xC3\xA9");
  CHECK(door.post("/detokenize", R"({"model":"bytes","tokens":[999]})").status == 400);
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  const std::string messages = R"("messages":[{"role":"user","content":"count me"}])";
  const auto counted = parsed(door.post("/tokenize", R"({"model":"bytes",)" + messages + "}").body);
  const auto used = parsed(door.post("/v1/chat/completions", R"({"model":"bytes",)" + messages + "}").body);
  CHECK(counted.at("count") == used.at("usage").at("prompt_tokens"));
}

TEST_CASE("every reply has a request id, the client's own where it sent one") {
  OpenDoor door;
  CHECK(door.get("/version").headers.at("x-request-id").starts_with("req-"));
  CHECK(door.get("/nothing", "X-Request-ID: abc-7\r\n").headers.at("x-request-id") == "abc-7");
  CHECK(door.get("/version").headers.contains("openai-processing-ms"));
}

TEST_CASE("metrics count calls and routes, and reading them sends no letter") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "abc"); };
  CHECK(door.post(kText, kBody).status == 200);
  (void)door.mesh.next<Submit>();
  const RawReply reply = door.get("/metrics");
  CHECK(reply.headers.at("content-type").starts_with("text/plain; version=0.0.4"));
  CHECK(reply.body.find("vllm:generation_tokens_total{engine=\"0\",model_name=\"org/bytes\"} 3") !=
        std::string::npos);
  CHECK(
      reply.body.find("http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"2xx\"} 1") !=
      std::string::npos);
}

TEST_CASE("a port that is taken and an address that is none are clear errors") {
  OpenDoor door;
  ScriptedMesh mesh;
  GatewayOptions options;
  options.listen = "127.0.0.1:" + std::to_string(door.gateway->port());
  auto taken = open_gateway(options, byte_model, mesh);
  REQUIRE_FALSE(taken.has_value());
  CHECK(taken.error().context.find("in use") != std::string::npos);
  for (const std::string bad : {"nonsense", "127.0.0.1:99999", "127.0.0.1:x", "256.1.1.1:80"}) {
    options.listen = bad;
    CHECK_FALSE(open_gateway(options, byte_model, mesh).has_value());
  }
}

TEST_CASE("two models that claim one name are refused") {
  ScriptedMesh mesh;
  GatewayOptions options;
  options.listen = "127.0.0.1:0";
  options.models = {{.id = ModelId("a"), .folder = {}, .aliases = {"x"}},
                    {.id = ModelId("b"), .folder = {}, .aliases = {"x"}}};
  const auto opened = open_gateway(options, byte_model, mesh);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().context.find("'x' is claimed by both 'a' and 'b'") != std::string::npos);
}

TEST_CASE("a stop lets running calls end and takes no new ones") {
  OpenDoor door;
  RawClient client = door.client();
  client.post(kText, kBody);
  const Submit submit = door.mesh.next<Submit>();
  door.mesh.accept(submit);
  std::thread stopper([&] { door.gateway->stop(Millis{20'000}); });
  door.mesh.tokens(submit, 0, "done", FinishReason::stop);
  const RawReply reply = client.reply();
  CHECK(reply.status == 200);
  stopper.join();
  CHECK(client.closed());
}

TEST_CASE("a stop without grace tells waiting clients and cancels their calls") {
  OpenDoor door;
  RawClient client = door.client();
  client.post(kText, kBody);
  const Submit submit = door.mesh.next<Submit>();
  door.gateway->stop(Millis{0});
  CHECK(door.mesh.next<Cancel>().request == submit.request);
  CHECK(client.reply().status == 503);
}
