// Calls through the whole gateway: HTTP in, letters out, tokens in, answers and streams out.
#include <doctest/doctest.h>

#include "tests/unit/gateway/open_door.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

const std::string kChat = "/v1/chat/completions";
const std::string kText = "/v1/completions";

std::string chat_body(const std::string& more = "") {
  return R"({"model":"org/bytes","messages":[{"role":"user","content":"hi"}])" + more + "}";
}
std::string text_body(const std::string& more = "") {
  return R"({"model":"bytes","prompt":"1+1=")" + more + "}";
}

}  // namespace

TEST_CASE("a chat is answered as a whole") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "hello"); };
  const RawReply reply = door.post(kChat, chat_body());
  CHECK(reply.status == 200);
  CHECK(reply.headers.at("content-type") == "application/json");
  const auto body = parsed(reply.body).as_object();
  CHECK(body.at("object") == "chat.completion");
  CHECK(body.at("model") == "org/bytes");
  CHECK(body.at("id").as_string().starts_with("chatcmpl-"));
  CHECK(body.at("service_tier") == "default");
  const auto& choice = body.at("choices").as_array().at(0).as_object();
  CHECK(choice.at("message").at("content") == "hello");
  CHECK(choice.at("message").at("role") == "assistant");
  CHECK(choice.at("finish_reason") == "stop");
  CHECK(choice.at("logprobs").is_null());
  CHECK(body.at("usage").at("completion_tokens") == 5);
  CHECK(body.at("usage").at("prompt_tokens_details").at("cached_tokens") == 0);
}

TEST_CASE("a stream is the text of the whole answer in chunks of one id, and ends with [DONE]") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) {
    door.mesh.accept(submit);
    door.mesh.tokens(submit, 0, "h\xC3");  // A code point in two letters.
    door.mesh.tokens(submit, 2, "\xA9 yo", FinishReason::length);
  };
  const RawReply reply = door.post(kChat, chat_body(R"(,"stream":true)"));
  CHECK(reply.whole);
  CHECK(reply.headers.at("content-type") == "text/event-stream; charset=utf-8");
  CHECK(reply.headers.at("cache-control") == "no-cache");
  CHECK(reply.headers.at("x-accel-buffering") == "no");
  const auto events = events_of(reply.body);
  REQUIRE(events.size() >= 4);
  CHECK(events.back() == "[DONE]");
  const auto first = parsed(events[0]).as_object();
  CHECK(first.at("choices").at(0).at("delta").at("role") == "assistant");
  std::string text;
  for (std::size_t i = 1; i + 2 < events.size(); ++i) {
    const auto chunk = parsed(events[i]).as_object();
    CHECK(chunk.at("object") == "chat.completion.chunk");
    CHECK(chunk.at("id") == first.at("id"));
    CHECK(chunk.at("created") == first.at("created"));
    CHECK_FALSE(chunk.contains("usage"));
    CHECK(chunk.at("choices").at(0).at("finish_reason").is_null());
    CHECK_FALSE(chunk.at("choices").at(0).at("delta").as_object().contains("role"));
    text += chunk.at("choices").at(0).at("delta").at("content").as_string().c_str();
  }
  CHECK(text == "h\xC3\xA9 yo");
  const auto last = parsed(events[events.size() - 2]).as_object();
  CHECK(last.at("choices").at(0).at("finish_reason") == "length");
  CHECK(last.at("choices").at(0).at("delta").as_object().empty());
}

TEST_CASE("three choices keep their indices in every chunk, each with one role and one finish") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) {
    door.mesh.answer(submit, std::string(1, char('a' + submit.sampling.seed % 3)));
  };
  const auto events = events_of(door.post(kChat, chat_body(R"(,"stream":true,"n":3,"seed":3)")).body);
  std::map<std::int64_t, std::string> text;
  std::map<std::int64_t, int> roles, finishes;
  for (const std::string& event : events) {
    if (event == "[DONE]") continue;
    const auto choice = parsed(event).at("choices").at(0).as_object();
    const std::int64_t index = choice.at("index").as_int64();
    const auto& delta = choice.at("delta").as_object();
    if (delta.contains("role")) ++roles[index];
    if (delta.contains("content")) text[index] += delta.at("content").as_string().c_str();
    if (!choice.at("finish_reason").is_null()) ++finishes[index];
  }
  CHECK(text == std::map<std::int64_t, std::string>{{0, "a"}, {1, "b"}, {2, "c"}});
  CHECK(roles == std::map<std::int64_t, int>{{0, 1}, {1, 1}, {2, 1}});
  CHECK(finishes == roles);
}

TEST_CASE("the usage chunk comes if and only if it is asked for, last, with an empty list of choices") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "ok"); };
  for (const std::string& path : {kChat, kText}) {
    const std::string plain = path == kChat ? chat_body(R"(,"stream":true)") : text_body(R"(,"stream":true)");
    for (const std::string& event : events_of(door.post(path, plain).body))
      CHECK(event.find("usage") == std::string::npos);
    std::string asked = plain;
    asked.insert(asked.size() - 1, R"(,"stream_options":{"include_usage":true})");
    const auto events = events_of(door.post(path, asked).body);
    const auto usage = parsed(events.at(events.size() - 2)).as_object();
    CHECK(usage.at("choices").as_array().empty());
    CHECK(usage.at("usage").at("completion_tokens") == 2);
    for (std::size_t i = 0; i + 2 < events.size(); ++i) CHECK(parsed(events[i]).at("usage").is_null());
  }
}

TEST_CASE("several prompts times n are answered in order, and echo puts the prompt before the text") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) {
    door.mesh.answer(submit, std::string(1, char(submit.prompt.at(0) + 1)));
  };
  const RawReply reply = door.post(kText, R"({"model":"bytes","prompt":["a","k"],"n":2,"echo":true})");
  const auto body = parsed(reply.body).as_object();
  CHECK(body.at("object") == "text_completion");
  CHECK(body.at("model") == "bytes");  // As the client spelled it.
  std::vector<std::string> texts;
  for (const auto& choice : body.at("choices").as_array()) texts.emplace_back(choice.at("text").as_string());
  CHECK(texts == std::vector<std::string>{"ab", "ab", "kl", "kl"});
  CHECK(body.at("usage").at("prompt_tokens") == 2);
  CHECK(body.at("usage").at("completion_tokens") == 4);
}

TEST_CASE("streamed and whole text are equal where a stop cuts them") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) {
    door.mesh.accept(submit);
    for (std::uint64_t i = 0; const char byte : std::string("ab<en<end>cd")) {
      door.mesh.tokens(submit, i++, std::string(1, byte));
    }
  };
  const std::string more = R"(,"stop":["<end>"])";
  const auto whole = parsed(door.post(kText, text_body(more)).body).as_object();
  CHECK(whole.at("choices").at(0).at("text") == "ab<en");
  CHECK(whole.at("choices").at(0).at("finish_reason") == "stop");
  (void)door.mesh.next<Cancel>();
  std::string streamed;
  for (const std::string& event : events_of(door.post(kText, text_body(more + R"(,"stream":true)")).body)) {
    if (event != "[DONE]") streamed += parsed(event).at("choices").at(0).at("text").as_string().c_str();
  }
  CHECK(streamed == "ab<en");
}

TEST_CASE("logprobs have the shape of their endpoint, with exact bytes") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "\xC3\xA9"); };
  const auto chat = parsed(door.post(kChat, chat_body(R"(,"logprobs":true,"top_logprobs":2)")).body);
  const auto& content = chat.at("choices").at(0).at("logprobs").at("content").as_array();
  REQUIRE(content.size() == 2);
  CHECK(content[0].at("token") == "\xEF\xBF\xBD");
  CHECK(content[0].at("bytes") == boost::json::array{0xC3});
  CHECK(content[0].at("logprob") == -0.125);
  CHECK(content[0].at("top_logprobs").as_array().size() == 2);
  CHECK(content[0].at("top_logprobs").at(0).at("token") == "0");
  const auto bare = parsed(door.post(kChat, chat_body(R"(,"logprobs":true)")).body);
  CHECK(bare.at("choices").at(0).at("logprobs").at("content").at(0).at("top_logprobs").as_array().empty());
  const auto text =
      parsed(door.post(kText, text_body(R"(,"logprobs":1)")).body).at("choices").at(0).at("logprobs");
  CHECK(text.at("tokens") == boost::json::array{"bytes:\\xc3", "bytes:\\xa9"});
  CHECK(text.at("text_offset") == boost::json::array{0, 0});
  CHECK(text.at("top_logprobs").at(0).at("0") == -1.0);
  CHECK(text.at("top_logprobs").at(0).at("bytes:\\xc3") == -0.125);
}

TEST_CASE("a refusal before the answer begins is a status with a time to come back") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) {
    door.mesh.tell(
        Refused{submit.request, submit.attempt, ErrorCode::queue_full, "256 requests wait", Millis{1234}});
  };
  const RawReply reply = door.post(kChat, chat_body(R"(,"stream":true)"));
  CHECK(reply.status == 429);
  CHECK(reply.headers.at("retry-after") == "2");
  CHECK(reply.headers.at("retry-after-ms") == "1234");
  CHECK(reply.headers.at("x-should-retry") == "true");
  const auto error = parsed(reply.body).at("error").as_object();
  CHECK(error.at("message") == "256 requests wait");
  CHECK(error.at("code") == "rate_limit_exceeded");
  CHECK(error.at("param").is_null());
}

TEST_CASE("a failure after the stream began is an event in it, then [DONE], and no finish reason") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) {
    door.mesh.accept(submit);
    door.mesh.tokens(submit, 0, "so far");
    TokensProduced failed{.request = submit.request,
                          .attempt = submit.attempt,
                          .first = 6,
                          .tokens = {},
                          .logprobs = {},
                          .finish = FinishReason::failed,
                          .code = ErrorCode::internal,
                          .why = "logits are not numbers"};
    door.mesh.tell(failed);
  };
  const RawReply reply = door.post(kChat, chat_body(R"(,"stream":true)"));
  CHECK(reply.status == 200);
  const auto events = events_of(reply.body);
  REQUIRE(events.size() >= 3);
  CHECK(events.back() == "[DONE]");
  CHECK(parsed(events[events.size() - 2]).at("error").at("message") == "logits are not numbers");
  CHECK(reply.body.find("\"finish_reason\":\"") == std::string::npos);
  CHECK(door.post(kChat, chat_body()).status == 500);  // Not streamed, it is a status.
}

TEST_CASE("a client sees no more than a pause when the worker dies in the middle of its stream") {
  OpenDoor door;
  RawClient client = door.client();
  client.post(kChat, chat_body(R"(,"stream":true)"));
  const Submit first = door.mesh.next<Submit>();
  door.mesh.accept(first);
  door.mesh.start(first);
  door.mesh.tokens(first, 0, "ab");
  door.mesh.tell(ActorLost{ActorName("worker/1"), Incarnation{1}, "killed"});
  const Submit second = door.mesh.next<Submit>();
  CHECK(second.generated == std::vector<TokenId>{'a', 'b'});
  door.mesh.tokens(first, 2, "WRONG");
  door.mesh.tokens(second, 2, "cd", FinishReason::stop);
  std::string text;
  for (const std::string& event : events_of(client.reply().body)) {
    if (event == "[DONE]") continue;
    const auto delta = parsed(event).at("choices").at(0).at("delta").as_object();
    if (delta.contains("content")) text += delta.at("content").as_string().c_str();
  }
  CHECK(text == "abcd");
}

TEST_CASE(
    "a client that leaves is cancelled: in a stream, waiting for a whole answer, queued, and before "
    "acceptance") {
  OpenDoor door;
  for (const bool stream : {true, false}) {
    for (const int progress : {0, 1, 2}) {
      RawClient client = door.client();
      client.post(kChat, chat_body(stream ? R"(,"stream":true)" : ""));
      const Submit submit = door.mesh.next<Submit>();
      if (progress > 0) door.mesh.accept(submit);
      if (progress > 1) door.mesh.tokens(submit, 0, "abc");
      if (progress == 1)
        client.reset();
      else
        client.close();
      CHECK(door.mesh.next<Cancel>().request == submit.request);
    }
  }
  CHECK(parsed(door.get("/load").body).at("server_load") == 0);
}

TEST_CASE("a silent stream carries comments that are no events") {
  GatewayOptions options;
  options.times.ping = Millis{5};
  OpenDoor door(options);
  RawClient client = door.client();
  client.post(kChat, chat_body(R"(,"stream":true)"));
  const Submit submit = door.mesh.next<Submit>();
  door.mesh.accept(submit);
  RawReply reply = client.head();
  CHECK(reply.status == 200);
  while (reply.body.find(": ping\n\n: ping\n\n") == std::string::npos) REQUIRE(client.next_chunk(reply));
  door.mesh.tokens(submit, 0, "x", FinishReason::stop);
  while (client.next_chunk(reply)) {
  }
  CHECK(events_of(reply.body).back() == "[DONE]");
}

TEST_CASE("a model without a queue is refused, a broken one says why, an unknown one is not found") {
  OpenDoor door;
  const auto ask = [&](const std::string& model) {
    return door.post(kText, R"({"model":")" + model + R"(","prompt":"x"})");
  };
  CHECK(ask("cold/model").status == 503);
  CHECK(ask("cold/model").headers.at("x-should-retry") == "true");
  CHECK(ask("broken").status == 503);
  CHECK(ask("broken").headers.at("x-should-retry") == "false");
  CHECK(ask("broken").body.find("cut off at byte 17") != std::string::npos);
  CHECK(ask("nobody").status == 404);
  CHECK(parsed(ask("nobody").body).at("error").at("code") == "model_not_found");
  CHECK(parsed(ask("nobody").body).at("error").at("param") == "model");
}

TEST_CASE("deadlines and classes from headers reach the queue, and the tier that was used is stated") {
  OpenDoor door;
  door.mesh.on_submit = [&](const Submit& submit) { door.mesh.answer(submit, "x"); };
  auto reply = door.post(kChat, chat_body(), "x-slo-ttft-ms: 250\r\nx-llm-d-inference-ttl: 1.5s\r\n");
  Submit submit = door.mesh.next<Submit>();
  CHECK(submit.service_class == ServiceClass::deadline);
  CHECK(submit.ttft_in > Millis{0});
  CHECK(submit.ttft_in <= Millis{250});
  CHECK(submit.expires_in <= Millis{1500});
  CHECK_FALSE(submit.requeue_when_late);
  CHECK(parsed(reply.body).at("service_tier") == "priority");
  reply = door.post(kChat, chat_body(R"(,"service_tier":"flex")"));
  CHECK(door.mesh.next<Submit>().service_class == ServiceClass::best_effort);
  CHECK(parsed(reply.body).at("service_tier") == "flex");
  CHECK(door.post(kChat, chat_body(), "x-sangam-class: deadline\r\n").status == 400);
  CHECK(door.post(kChat, chat_body(), "x-slo-ttft-ms: soon\r\n").status == 400);
}

TEST_CASE("a trace of the client goes with every letter about its call") {
  OpenDoor door;
  RawClient client = door.client();
  client.post(kChat, chat_body(), "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n");
  const Envelope submit = door.mesh.next_envelope<Submit>();
  CHECK(submit.to == ActorName("queue/org/bytes"));
  CHECK(submit.trace.trace[0] == 0x4b);
  CHECK(submit.trace.span[7] == 0xb7);
}
