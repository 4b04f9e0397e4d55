// Requests against a model: defaults, room, classes.
#include "gateway/api/prepare.hpp"

#include <doctest/doctest.h>

#include "tests/unit/gateway/word_text.hpp"

using namespace sangam;

namespace {

OfferedModel model() {
  OfferedModel model;
  model.id = ModelId("m");
  model.context = Tokens{100};
  model.text = testing::byte_text();
  model.defaults.stop_tokens = {2};
  return model;
}

TextRequest completion(std::size_t size) {
  TextRequest request;
  request.endpoint = TextEndpoint::completions;
  request.prompts = {std::string(size, 'x')};
  return request;
}

TextRequest chat(std::size_t size) {
  TextRequest request;
  request.chat.messages = std::string(size, 'x');
  return request;
}

}  // namespace

TEST_CASE(
    "completions have 16 tokens by default, chats the rest of the context or what the model's makers "
    "advise") {
  CHECK(prepare(completion(10), model(), {})->sampling.max_tokens == Tokens{16});
  CHECK(prepare(completion(95), model(), {})->sampling.max_tokens == Tokens{5});
  CHECK(prepare(chat(10), model(), {})->sampling.max_tokens == Tokens{90});
  OfferedModel advised = model();
  advised.defaults.max_new_tokens = Tokens{24};
  CHECK(prepare(chat(10), advised, {})->sampling.max_tokens == Tokens{24});
}

TEST_CASE(
    "more output than there is room for is cut to the room; a prompt without room is refused with the "
    "numbers") {
  TextRequest request = completion(99);
  request.sampling.max_tokens = 50;
  CHECK(prepare(request, model(), {})->sampling.max_tokens == Tokens{1});
  request.prompts = {std::string(100, 'x')};
  const auto refused = prepare(request, model(), {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::context_length);
  CHECK(refused.error().param == "prompt");
  CHECK(refused.error().message.find("maximum context length is 100 tokens") != std::string::npos);
  CHECK(refused.error().message.find("150 tokens (100 in the prompt, 50 in the completion)") !=
        std::string::npos);
  CHECK(prepare(chat(100), model(), {}).error().param == "messages");
}

TEST_CASE("what the request leaves open is the model's advice, then OpenAI's default") {
  OfferedModel advised = model();
  advised.defaults.temperature = 0.0;
  advised.defaults.top_k = 20;
  TextRequest request = completion(1);
  request.sampling.top_p = 0.9;
  request.sampling.stop_tokens = {7};
  const Sampling sampling = prepare(request, advised, {.seed = 11})->sampling;
  CHECK(sampling.temperature == 0.0);
  CHECK(sampling.top_k == 20);
  CHECK(sampling.top_p == 0.9);
  CHECK(sampling.seed == 11);
  CHECK(sampling.stop_tokens == std::vector<TokenId>{2, 7});
  request.sampling.seed = -1;
  request.sampling.top_k = 0;
  CHECK(prepare(request, advised, {.seed = 11})->sampling.seed == 0xFFFFFFFFFFFFFFFFu);
  CHECK(prepare(request, advised, {})->sampling.top_k == 0);
}

TEST_CASE("a top_p of zero leaves the most likely token") {
  TextRequest request = completion(1);
  request.sampling.top_p = 0.0;
  CHECK(prepare(request, model(), {})->sampling.top_k == 1);
  CHECK(prepare(request, model(), {})->sampling.top_p == 1.0);
}

TEST_CASE("tokens outside of the vocabulary are refused") {
  TextRequest request = completion(1);
  request.prompts = {std::vector<TokenId>{255}};
  CHECK(prepare(request, model(), {}).has_value());
  request.prompts = {std::vector<TokenId>{256}};
  CHECK(prepare(request, model(), {}).error().param == "prompt");
  request = completion(1);
  request.sampling.logit_bias = {{256, 1.0}};
  CHECK(prepare(request, model(), {}).error().param == "logit_bias");
}

TEST_CASE("a time to first token makes a deadline, a model's own promise one that may become late") {
  TextRequest request = completion(1);
  CHECK(prepare(request, model(), {})->service_class == ServiceClass::normal);
  request.urgency.ttft = Millis{300};
  CHECK(prepare(request, model(), {})->service_class == ServiceClass::deadline);
  CHECK_FALSE(prepare(request, model(), {})->requeue_when_late);
  OfferedModel promising = model();
  promising.ttft = Millis{900};
  CHECK(prepare(completion(1), promising, {})->ttft == Millis{900});
  CHECK(prepare(completion(1), promising, {})->requeue_when_late);
  request.urgency.service_class = ServiceClass::best_effort;
  CHECK(prepare(request, model(), {})->service_class == ServiceClass::best_effort);
}

TEST_CASE("prompts times n is bounded, and an empty prompt is refused") {
  TextRequest request = completion(1);
  request.n = 8;
  CHECK(prepare(request, model(), {.choices_max = 8}).has_value());
  request.prompts.push_back("y");
  CHECK(prepare(request, model(), {.choices_max = 8}).error().param == "n");
  CHECK(prepare(completion(0), model(), {}).error().param == "prompt");
}

TEST_CASE("a broken model says why") {
  OfferedModel broken = model();
  broken.text = nullptr;
  broken.broken = "no tokenizer.json";
  CHECK(prepare(completion(1), broken, {}).error().code == ErrorCode::corrupt);
}
