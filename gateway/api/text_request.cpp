// Parses the bodies of /v1/chat/completions, /v1/completions, /tokenize and /detokenize.
#include "gateway/api/text_request.hpp"

#include <boost/json/serialize.hpp>
#include <charconv>

#include "gateway/api/body_fields.hpp"
#include "gateway/api/chat_messages.hpp"

namespace sangam {
namespace {

namespace json = boost::json;

constexpr std::size_t kStopsMax = 4;         // As OpenAI documents.
constexpr std::size_t kStopBytesMax = 1024;  // Ours: text held back is bounded by it.
constexpr double kLogprobsMax = 20;          // As OpenAI documents for chat; vLLM's default for both.
constexpr BodyFields::Range kSeedRange{-9.3e18, 1.9e19};

void read_stop(BodyFields& fields, TextRequest& request) {
  const json::value* stop = fields.find("stop");
  if (stop == nullptr) return;
  json::array list = stop->is_array() ? stop->get_array() : json::array{*stop};
  if (list.size() > kStopsMax) {
    return fields.fail("stop", "at most 4 sequences are possible, got " + std::to_string(list.size()));
  }
  for (const json::value& item : list) {
    if (!item.is_string()) return fields.fail("stop", "expected a string or a list of strings");
    const std::string text(item.get_string());
    if (text.empty()) return fields.fail("stop", "a sequence may not be empty");
    if (text.size() > kStopBytesMax) return fields.fail("stop", "a sequence may have at most 1024 bytes");
    request.stop.push_back(text);
  }
}

void read_logit_bias(BodyFields& fields, SamplingWishes& sampling) {
  const json::object* table = fields.object("logit_bias");
  if (table == nullptr) return;
  BodyFields biases(*table, "logit_bias.");
  for (const auto& [key, value] : *table) {
    LogitBias bias;
    const auto end = key.data() + key.size();
    const auto [stopped, error] = std::from_chars(key.data(), end, bias.token);
    if (error != std::errc() || stopped != end) {
      return fields.fail("logit_bias", "'" + std::string(key) + "' is not a token id");
    }
    bias.bias = biases.number(key, {-100, 100}).value_or(0.0);
    if (biases.fault()) return fields.fail("logit_bias", "biases are numbers from -100 to 100");
    sampling.logit_bias.push_back(bias);
  }
}

void read_sampling(BodyFields& fields, SamplingWishes& sampling) {
  sampling.temperature = fields.number("temperature", {0, 2});
  sampling.top_p = fields.number("top_p", {0, 1});
  sampling.min_p = fields.number("min_p", {0, 1});
  sampling.repetition_penalty = fields.number("repetition_penalty", {0.01, 100});
  sampling.presence_penalty = fields.number("presence_penalty", {-2, 2});
  sampling.frequency_penalty = fields.number("frequency_penalty", {-2, 2});
  sampling.top_k = fields.integer("top_k", {-1, 1e9});
  if (sampling.top_k == -1) sampling.top_k = 0;  // vLLM's spelling of "all".
  sampling.seed = fields.integer("seed", kSeedRange);
  sampling.min_tokens = fields.integer("min_tokens", {0, 1e9});
  sampling.max_tokens = fields.integer("max_tokens", {1, 1e9});
  if (const auto newer = fields.integer("max_completion_tokens", {1, 1e9})) {
    sampling.max_tokens = std::min(*newer, sampling.max_tokens.value_or(*newer));
  }
  sampling.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  sampling.stop_tokens = fields.tokens("stop_token_ids");
  read_logit_bias(fields, sampling);
}

void read_class(BodyFields& fields, Urgency& urgency) {
  if (const json::value* priority = fields.find("priority")) {
    // vLLM: an integer, lower is sooner, 0 is what everyone has.
    const auto value = fields.integer("priority");
    if (priority->is_number() && value && *value > 0) urgency.service_class = ServiceClass::best_effort;
  }
  const auto tier = fields.text("service_tier");
  if (!tier || *tier == "auto" || *tier == "default" || *tier == "priority") return;
  if (*tier != "flex")
    return fields.fail("service_tier", "'" + *tier + "'; expected auto, default, flex or priority");
  urgency.service_class = ServiceClass::best_effort;
}

void read_urgency(BodyFields& fields, Urgency& urgency) {
  if (const auto ttft = fields.number("ttft_slo_ms", {1, 86'400'000}))
    urgency.ttft = Millis(std::int64_t(*ttft));
  read_class(fields, urgency);
}

/// What this server cannot do is refused, not left out: the answer would be another than asked for.
void refuse_unsupported(BodyFields& fields) {
  if (const json::object* format = fields.object("response_format")) {
    const json::value* type = format->if_contains("type");
    if (type == nullptr || *type != json::value("text")) {
      fields.fail("response_format", "only {\"type\": \"text\"} is supported");
    }
  }
  if (const json::value* choice = fields.find("tool_choice")) {
    if (*choice != json::value("auto") && *choice != json::value("none")) {
      fields.fail("tool_choice", "only \"auto\" and \"none\" are supported");
    }
  }
  if (fields.find("functions")) fields.fail("functions", "use 'tools'; functions are not supported");
  if (fields.find("audio")) fields.fail("audio", "the models here read and write text only");
}

void read_common(BodyFields& fields, TextRequest& request) {
  request.model = fields.text("model").value_or("");
  request.n = fields.integer("n", {1, 128}).value_or(1);
  request.stream = fields.boolean("stream").value_or(false);
  request.skip_special_tokens = fields.boolean("skip_special_tokens").value_or(true);
  if (const json::object* options = fields.object("stream_options")) {
    BodyFields inner(*options, "stream_options.");
    request.include_usage = inner.boolean("include_usage").value_or(false);
    if (inner.fault()) fields.fail("stream_options.include_usage", "expected a boolean");
    if (!request.stream) fields.fail("stream_options", "only allowed together with \"stream\": true");
  }
  read_stop(fields, request);
  read_sampling(fields, request.sampling);
  read_urgency(fields, request.urgency);
  refuse_unsupported(fields);
}

void read_turns(BodyFields& fields, ChatTurns& chat) {
  const json::array* messages = fields.array("messages");
  if (messages == nullptr) return fields.fail("messages", "expected a list of messages");
  if (const json::array* tools = fields.array("tools"); tools && !tools->empty()) {
    const json::value* choice = fields.find("tool_choice");
    if (choice == nullptr || *choice != json::value("none")) chat.tools = json::serialize(*tools);
  }
  if (const json::object* args = fields.object("chat_template_kwargs"))
    chat.template_args = json::serialize(*args);
  chat.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
}

ApiResult<std::string> read_messages(const json::object& body) {
  auto normal = normal_messages(body.at("messages").get_array());
  if (!normal) return normal.error();
  return json::serialize(*normal);
}

void read_chat_logprobs(BodyFields& fields, SamplingWishes& sampling) {
  const auto top = fields.integer("top_logprobs", {0, kLogprobsMax});
  const bool wanted = fields.boolean("logprobs").value_or(false);
  if (top.value_or(0) > 0 && !wanted)
    fields.fail("top_logprobs", "only allowed together with \"logprobs\": true");
  if (wanted) sampling.logprobs = top.value_or(0);
}

/// `prompt` is a string, a list of strings, a list of token ids, or a list of such lists.
void read_prompts(BodyFields& fields, std::vector<PromptInput>& prompts) {
  const json::value* prompt = fields.find("prompt");
  if (prompt == nullptr) return fields.fail("prompt", "expected a string, a list of strings, or token ids");
  if (prompt->is_string()) {
    prompts.emplace_back(std::string(prompt->get_string()));
    return;
  }
  const json::array* list = fields.array("prompt");
  if (list == nullptr) return;
  if (list->empty()) return fields.fail("prompt", "the list is empty");
  if (list->front().is_number()) {
    prompts.emplace_back(fields.tokens(*list, "prompt"));
    return;
  }
  for (const json::value& item : *list) {
    if (item.is_string()) {
      prompts.emplace_back(std::string(item.get_string()));
    } else if (item.is_array() && !item.get_array().empty()) {
      prompts.emplace_back(fields.tokens(item.get_array(), "prompt"));
    } else {
      return fields.fail("prompt", "expected strings or lists of token ids, got " + json::serialize(item));
    }
  }
}

void refuse_unsupported_in_completion(BodyFields& fields, const TextRequest& request) {
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty()) {
    fields.fail("suffix", "insertion is not supported");
  }
  if (const auto best_of = fields.integer("best_of"); best_of && *best_of != request.n) {
    fields.fail("best_of", "only best_of equal to n (" + std::to_string(request.n) + ") is supported");
  }
  if (request.echo && request.sampling.logprobs >= 0) {
    fields.fail("echo", "logprobs of the prompt are not supported; use echo or logprobs, not both");
  }
}

}  // namespace

ApiResult<TextRequest> parse_chat(std::string_view body) {
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  BodyFields fields(*parsed);
  TextRequest request;
  request.endpoint = TextEndpoint::chat;
  read_common(fields, request);
  read_turns(fields, request.chat);
  read_chat_logprobs(fields, request.sampling);
  if (fields.fault()) return *fields.fault();
  auto messages = read_messages(*parsed);
  if (!messages) return messages.error();
  request.chat.messages = std::move(*messages);
  return request;
}

ApiResult<TextRequest> parse_completion(std::string_view body) {
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  BodyFields fields(*parsed);
  TextRequest request;
  request.endpoint = TextEndpoint::completions;
  read_common(fields, request);
  request.echo = fields.boolean("echo").value_or(false);
  request.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  request.sampling.logprobs = fields.integer("logprobs", {0, kLogprobsMax}).value_or(-1);
  read_prompts(fields, request.prompts);
  refuse_unsupported_in_completion(fields, request);
  if (fields.fault()) return *fields.fault();
  return request;
}

ApiResult<TokenizeRequest> parse_tokenize(std::string_view body) {
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  BodyFields fields(*parsed);
  TokenizeRequest request;
  request.model = fields.text("model").value_or("");
  request.prompt = fields.text("prompt");
  request.token_texts = fields.boolean("return_token_strs").value_or(false);
  request.add_special_tokens = fields.boolean("add_special_tokens").value_or(request.prompt.has_value());
  if (!request.prompt) read_turns(fields, request.chat);
  if (fields.fault()) return *fields.fault();
  if (request.prompt) return request;
  auto messages = read_messages(*parsed);
  if (!messages) return messages.error();
  request.chat.messages = std::move(*messages);
  return request;
}

ApiResult<DetokenizeRequest> parse_detokenize(std::string_view body) {
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  BodyFields fields(*parsed);
  DetokenizeRequest request;
  request.model = fields.text("model").value_or("");
  if (!fields.find("tokens")) fields.fail("tokens", "expected a list of token ids");
  request.tokens = fields.tokens("tokens");
  if (fields.fault()) return *fields.fault();
  return request;
}

}  // namespace sangam
