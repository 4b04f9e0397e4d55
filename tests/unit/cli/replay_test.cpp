// What a replay sends, and what it makes of the answers.
#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <set>

#include "cli/replay_answer.hpp"
#include "cli/replay_plan.hpp"

using namespace sangam;

namespace {

namespace json = boost::json;

const std::vector<MeshModel> kOffered{{"a", Tokens(100)}, {"b", Tokens(0)}};

/// Due at 10 s: 3 tokens, the first within 120 ms, then each within 50 ms.
sim::TraceRequest three_tokens() {
  return {Seconds(10), 4, Tokens(100), Tokens(3)};
}
constexpr sim::Slo kSlo{Millis(120), Millis(50)};

std::string chunk(const std::string& tokens, const std::string& finish = "null") {
  return "data: {\"choices\":[{\"text\":\"x\",\"logprobs\":{\"tokens\":[" + tokens + "]},\"finish_reason\":" + finish + "}]}\n\n";
}
const std::string kEnd = "data: {\"choices\":[{\"text\":\"\",\"logprobs\":null,\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";

ReplayAnswer streaming() {
  ReplayAnswer answer(three_tokens(), kSlo);
  answer.on_status(200);
  return answer;
}

}  // namespace

TEST_CASE("a body asks for exactly the trace's tokens, with another prompt each time") {
  const auto body = json::parse(completion_body("a\"b", three_tokens(), 1));
  CHECK(body.at("model").as_string() == "a\"b");
  CHECK(body.at("prompt").as_array().size() == 100);
  for (const auto& token : body.at("prompt").as_array()) CHECK_UNARY(token.as_int64() >= 10 && token.as_int64() < 250);
  CHECK(body.at("max_tokens").as_int64() == 3);
  CHECK(body.at("ignore_eos").as_bool());
  CHECK(body.at("stream").as_bool());
  CHECK(completion_body("m", three_tokens(), 1) != completion_body("m", three_tokens(), 2));
  CHECK(completion_body("m", three_tokens(), 1) == completion_body("m", three_tokens(), 1));
}

TEST_CASE("apps get the model that is chosen, else that of their name, else one in turn") {
  const std::vector<std::string> apps{"x", "b", "y", "z"};
  CHECK(models_of(apps, {}, kOffered).value() == std::vector<std::string>{"a", "b", "b", "a"});
  CHECK(models_of(apps, {{"y", "far"}}, kOffered).value() == std::vector<std::string>{"a", "b", "far", "b"});
  CHECK(models_of(apps, {{"*", "a"}, {"x", "c"}}, kOffered).value() == std::vector<std::string>{"c", "a", "a", "a"});
  CHECK(models_of(apps, {{"*", "a"}}, {}).has_value());
  CHECK(models_of(apps, {}, {}).error().code == ErrorCode::unavailable);
  CHECK(models_of(apps, {{"w", "a"}}, kOffered).error().context.find("'w'; it has x, b, y, z") != std::string::npos);
}

TEST_CASE("choices that are none are refused") {
  CHECK(parse_model_choices({"a=b", "*=c=d"}).value() == ModelChoices{{"a", "b"}, {"*", "c=d"}});
  for (const std::string wrong : {"a", "=b", "a="}) CHECK(parse_model_choices({wrong}).error().code == ErrorCode::invalid_input);
  CHECK(parse_model_choices({"a=b", "a=c"}).error().code == ErrorCode::invalid_input);
}

TEST_CASE("requests beyond their model's context are counted where the context is known") {
  sim::Trace trace{{"x", "y"}, {{Micros(0), 0, Tokens(90), Tokens(10)}, {Micros(0), 0, Tokens(91), Tokens(10)}, {Micros(0), 1, Tokens(9'000), Tokens(1)}}};
  CHECK(count_too_long(trace, {"a", "b"}, kOffered) == 1);
}

TEST_CASE("tokens are timed from when the request was due") {
  auto answer = streaming();
  answer.on_body(chunk("\"a\""), Seconds(10) + Millis(120));
  answer.on_body(chunk("\"b\",\"c\""), Seconds(10) + Millis(200));  // The second is due after 170, the third after 220.
  answer.on_body(kEnd, Seconds(10) + Millis(201));
  const auto record = answer.end(std::nullopt, Seconds(11));
  CHECK(record.code == ErrorCode::none);
  CHECK(record.app == 4);
  CHECK(record.ttft == Millis(120));
  CHECK(record.late == Tokens(1));
  CHECK(record.end == Seconds(10) + Millis(200));
  CHECK(record.ttft_slo == Millis(120));
}

TEST_CASE("a stream may be cut anywhere") {
  const std::string whole = chunk("\"a\"") + ": comment\n\n" + chunk("\"b\"") + chunk("\"c\"") + kEnd;
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    auto answer = streaming();
    answer.on_body(whole.substr(0, cut), Seconds(10));
    answer.on_body(whole.substr(cut), Seconds(10));
    const auto record = answer.end(std::nullopt, Seconds(11));
    CHECK(record.code == ErrorCode::none);
    CHECK(record.late == Tokens(0));
  }
}

TEST_CASE("answers that are shorter than asked for are failures, all of them late") {
  auto clamped = streaming();
  clamped.on_body(chunk("\"a\"") + kEnd, Seconds(10));
  const auto record = clamped.end(std::nullopt, Seconds(11));
  CHECK(record.code == ErrorCode::context_length);
  CHECK(record.late == Tokens(3));
  CHECK(record.ttft == Micros(0));
  auto cut = streaming();
  cut.on_body(chunk("\"a\"") + chunk("\"b\"") + chunk("\"c\""), Seconds(10));
  CHECK(cut.end(std::nullopt, Seconds(11)).code == ErrorCode::internal);  // Nobody said that it was the end.
}

TEST_CASE("refusals have the mesh's code, whether before the stream or in it") {
  const std::string error = R"({"error":{"message":"too late","type":"overloaded_error","param":null,"code":"deadline_unattainable"}})";
  ReplayAnswer refused(three_tokens(), kSlo);
  refused.on_status(503);
  refused.on_body(error.substr(0, 30), Seconds(10));
  refused.on_body(error.substr(30), Seconds(10));
  const auto record = refused.end(std::nullopt, Seconds(12));
  CHECK(record.code == ErrorCode::cannot_be_on_time);
  CHECK(record.ttft < Micros(0));
  CHECK(record.late == Tokens(3));
  CHECK(record.end == Seconds(12));
  CHECK(refused.problem() == "503: too late");
  auto broken = streaming();
  broken.on_body(chunk("\"a\"") + "data: " + error + "\n\ndata: [DONE]\n\n", Seconds(10));
  CHECK(broken.end(std::nullopt, Seconds(12)).code == ErrorCode::cannot_be_on_time);
}

TEST_CASE("strangers' refusals are told by their status, failures of the network by themselves") {
  const auto code_after = [](int status) {
    ReplayAnswer answer(three_tokens(), kSlo);
    answer.on_status(status);
    answer.on_body("<html>", Seconds(10));
    return answer.end(std::nullopt, Seconds(11)).code;
  };
  CHECK(code_after(429) == ErrorCode::queue_full);
  CHECK(code_after(503) == ErrorCode::unavailable);
  CHECK(code_after(502) == ErrorCode::internal);
  CHECK(code_after(404) == ErrorCode::invalid_input);
  ReplayAnswer never(three_tokens(), kSlo);
  const auto record = never.end(make_error(ErrorCode::unavailable, "refused"), Seconds(10));
  CHECK(record.code == ErrorCode::unavailable);
  CHECK(record.late == Tokens(3));
  CHECK_FALSE(never.answered());
}
