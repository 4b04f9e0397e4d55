// Bodies: what is accepted, what is refused, and that null is absent.
#include <doctest/doctest.h>

#include <random>

#include "gateway/api/text_request.hpp"

using namespace sangam;

namespace {

ApiResult<TextRequest> chat(const std::string& more) {
  return parse_chat(R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + more + "}");
}
ApiResult<TextRequest> text(const std::string& more) {
  return parse_completion(R"({"model":"m","prompt":"hi")" + more + "}");
}

}  // namespace

TEST_CASE("null is absent for every optional field of both endpoints") {
  for (const std::string field : {"max_tokens",
                                  "max_completion_tokens",
                                  "stop",
                                  "seed",
                                  "temperature",
                                  "top_p",
                                  "top_k",
                                  "min_p",
                                  "n",
                                  "stream",
                                  "stream_options",
                                  "logprobs",
                                  "top_logprobs",
                                  "tools",
                                  "tool_choice",
                                  "presence_penalty",
                                  "frequency_penalty",
                                  "repetition_penalty",
                                  "logit_bias",
                                  "min_tokens",
                                  "ignore_eos",
                                  "stop_token_ids",
                                  "response_format",
                                  "user",
                                  "service_tier",
                                  "priority",
                                  "ttft_slo_ms",
                                  "echo",
                                  "suffix",
                                  "best_of",
                                  "functions",
                                  "chat_template_kwargs",
                                  "skip_special_tokens",
                                  "add_generation_prompt",
                                  "add_special_tokens",
                                  "audio"}) {
    CAPTURE(field);
    CHECK(chat(",\"" + field + "\":null").has_value());
    CHECK(text(",\"" + field + "\":null").has_value());
  }
}

TEST_CASE("unknown fields are ignored") {
  CHECK(chat(R"(,"store":true,"metadata":{"a":1},"x":[null])").has_value());
}

TEST_CASE("wrong types and values outside of the range are refused, and the parameter is named") {
  const std::vector<std::pair<std::string, std::string>> faults{
      {R"("temperature":"hot")", "temperature"},
      {R"("temperature":2.01)", "temperature"},
      {R"("temperature":-0.1)", "temperature"},
      {R"("top_p":1.5)", "top_p"},
      {R"("n":0)", "n"},
      {R"("n":1.5)", "n"},
      {R"("n":129)", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":-1)", "max_tokens"},
      {R"("max_tokens":"9")", "max_tokens"},
      {R"("stop":["a","b","c","d","e"])", "stop"},
      {R"("stop":7)", "stop"},
      {R"("stop":"")", "stop"},
      {R"("presence_penalty":3)", "presence_penalty"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"5":101})", "logit_bias"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("seed":"x")", "seed"},
      {R"("service_tier":"gold")", "service_tier"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("stop_token_ids":[-1])", "stop_token_ids"},
      {R"("top_k":-2)", "top_k"},
  };
  for (const auto& [field, param] : faults) {
    CAPTURE(field);
    for (const auto& result : {chat("," + field), text("," + field)}) {
      REQUIRE_FALSE(result.has_value());
      CHECK(result.error().code == ErrorCode::invalid_input);
      CHECK(result.error().param == param);
    }
  }
}

TEST_CASE("values at the edge of their range are accepted") {
  for (const std::string field :
       {R"("temperature":0)", R"("temperature":2)", R"("top_p":0)", R"("top_p":1)", R"("n":128)",
        R"("top_k":-1)", R"("stop":["a","b","c","d"])", R"("presence_penalty":-2)",
        R"("seed":-9223372036854775808)", R"("seed":18446744073709551615)", R"("logit_bias":{"5":-100})",
        R"("max_tokens":1)", R"("max_tokens":16.0)"}) {
    CAPTURE(field);
    CHECK(chat("," + field).has_value());
  }
}

TEST_CASE("bodies that are no JSON object are refused in words") {
  for (const std::string body :
       {"", "{", "[]", "null", "\"x\"", "{\"a\":}", "{\"model\":\"\xC3\"}", "{}{}"}) {
    CAPTURE(body);
    REQUIRE_FALSE(parse_chat(body).has_value());
    CHECK(parse_chat(body).error().code == ErrorCode::invalid_input);
  }
  const std::string deep = std::string(100'000, '[');
  CHECK_FALSE(parse_chat(deep).has_value());
}

TEST_CASE("the smaller of max_tokens and max_completion_tokens counts") {
  CHECK(chat(R"(,"max_tokens":9,"max_completion_tokens":5)")->sampling.max_tokens == 5);
  CHECK(chat(R"(,"max_tokens":3,"max_completion_tokens":5)")->sampling.max_tokens == 3);
  CHECK(chat(R"(,"max_completion_tokens":5)")->sampling.max_tokens == 5);
}

TEST_CASE("a prompt is a string, strings, token ids, or lists of them") {
  const auto prompts = [](const std::string& prompt) {
    return parse_completion(R"({"prompt":)" + prompt + "}");
  };
  CHECK(prompts(R"("a")")->prompts == std::vector<PromptInput>{"a"});
  CHECK(prompts(R"(["a","b"])")->prompts == std::vector<PromptInput>{"a", "b"});
  CHECK(prompts("[1,2]")->prompts == std::vector<PromptInput>{std::vector<TokenId>{1, 2}});
  CHECK(prompts("[[1],[2,3]]")->prompts ==
        std::vector<PromptInput>{std::vector<TokenId>{1}, std::vector<TokenId>{2, 3}});
  for (const std::string bad :
       {"[]", "7", "[[]]", "[-1]", "[1.5]", "[\"a\",null]", "{}", "null", "[4294967296]"}) {
    CAPTURE(bad);
    REQUIRE_FALSE(prompts(bad).has_value());
    CHECK(prompts(bad).error().param == "prompt");
  }
}

TEST_CASE("messages are brought into the one form that templates know") {
  const auto messages = [](const std::string& list) { return parse_chat(R"({"messages":)" + list + "}"); };
  CHECK(messages(R"([{"role":"developer","content":"x"}])")->chat.messages ==
        R"([{"role":"system","content":"x"}])");
  CHECK(messages(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])")
            ->chat.messages == R"([{"role":"user","content":"a\nb"}])");
  CHECK(
      messages(
          R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]}])")
          ->chat.messages ==
      R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]}])");
  for (const std::string bad :
       {"[]", "null", "{}", R"([{"content":"x"}])", R"([{"role":"robot","content":"x"}])",
        R"([{"role":"user"}])", R"([{"role":"user","content":null}])", R"([{"role":"user","content":7}])",
        R"(["hi"])", R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])",
        R"([{"role":"user","content":[{"type":"text"}]}])"}) {
    CAPTURE(bad);
    REQUIRE_FALSE(messages(bad).has_value());
    CHECK(messages(bad).error().param.rfind("messages", 0) == 0);
  }
}

TEST_CASE("what cannot be done is refused rather than left out") {
  CHECK(text(R"(,"suffix":"x")").error().param == "suffix");
  CHECK(text(R"(,"suffix":"")").has_value());
  CHECK(text(R"(,"best_of":2)").error().param == "best_of");
  CHECK(text(R"(,"best_of":2,"n":2)").has_value());
  CHECK(text(R"(,"echo":true,"logprobs":1)").error().param == "echo");
  CHECK(chat(R"(,"tool_choice":"required")").error().param == "tool_choice");
  CHECK(chat(R"(,"top_logprobs":3)").error().param == "top_logprobs");
}

TEST_CASE("logprobs are asked for in the way of each endpoint") {
  CHECK(chat("")->sampling.logprobs == -1);
  CHECK(chat(R"(,"logprobs":true)")->sampling.logprobs == 0);
  CHECK(chat(R"(,"logprobs":true,"top_logprobs":20)")->sampling.logprobs == 20);
  CHECK_FALSE(chat(R"(,"logprobs":true,"top_logprobs":21)").has_value());
  CHECK(chat(R"(,"logprobs":false)")->sampling.logprobs == -1);
  CHECK(text(R"(,"logprobs":0)")->sampling.logprobs == 0);
  CHECK_FALSE(text(R"(,"logprobs":true)").has_value());
}

TEST_CASE("bodies that are damaged at random are accepted or refused, and what is accepted is in range") {
  const std::string whole =
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"h\u00e9"}]}],"n":2,"stop":["a","b"],)"
      R"("temperature":0.5,"top_p":0.9,"seed":7,"logit_bias":{"12":-3},"stream":true,"stream_options":{"include_usage":true},)"
      R"("logprobs":true,"top_logprobs":3,"max_tokens":9,"prompt":[[1,2],[3]],"tokens":[1],"service_tier":"flex"})";
  const std::string spice = "\"{}[]:,0-9.eEnultrfas\\\xC3\xFF";
  const unsigned seed = 11302026;
  INFO("seed ", seed);
  std::mt19937 random(seed);
  int accepted = 0;
  for (int round = 0; round < 8'000; ++round) {
    std::string body = whole;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % body.size();
      switch (random() % 3) {
        case 0: body[at] = spice[random() % spice.size()]; break;
        case 1: body.erase(at, 1 + random() % 4); break;
        default: body.insert(at, 1, spice[random() % spice.size()]);
      }
    }
    (void)parse_tokenize(body).has_value();
    (void)parse_detokenize(body).has_value();
    for (const auto& request : {parse_chat(body), parse_completion(body)}) {
      if (!request) {
        REQUIRE_FALSE(request.error().message.empty());
        continue;
      }
      ++accepted;
      REQUIRE(request->n >= 1);
      REQUIRE(request->stop.size() <= 4);
      REQUIRE(request->sampling.temperature.value_or(0) <= 2);
      REQUIRE(request->sampling.max_tokens.value_or(1) >= 1);
    }
  }
  CHECK(accepted > 200);  // The damage is not so great that only refusals are tried.
}

TEST_CASE("tokenize takes a prompt or messages, with special tokens by default for a prompt only") {
  CHECK(parse_tokenize(R"({"prompt":"x"})")->add_special_tokens);
  CHECK_FALSE(parse_tokenize(R"({"messages":[{"role":"user","content":"x"}]})")->add_special_tokens);
  CHECK_FALSE(parse_tokenize("{}").has_value());
  CHECK(parse_detokenize(R"({"tokens":[1,2]})")->tokens == std::vector<TokenId>{1, 2});
  CHECK(parse_detokenize("{}").error().param == "tokens");
}
