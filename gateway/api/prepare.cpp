// Fills in a model's defaults and checks a request against the model.
#include "gateway/api/prepare.hpp"

#include <algorithm>

namespace sangam {
namespace {

constexpr std::int64_t kCompletionTokens = 16;  // As OpenAI documents for /v1/completions.

std::string number(std::int64_t value) {
  return std::to_string(value);
}

ApiResult<std::vector<TokenId>> known_tokens(const std::vector<TokenId>& tokens, const OfferedModel& model,
                                             std::string_view param) {
  const TokenId size = model.text->vocabulary_size();
  for (const TokenId token : tokens) {
    if (token < size) continue;
    return invalid(std::string(param), "Invalid '" + std::string(param) + "': token " + number(token) +
                                           " is outside of the vocabulary of " + number(size) + ".");
  }
  return tokens;
}

ApiResult<std::vector<TokenId>> prompt_tokens(const PromptInput& prompt, const OfferedModel& model,
                                              bool special) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return model.text->encode(*text, special);
  return known_tokens(std::get<std::vector<TokenId>>(prompt), model, "prompt");
}

ApiResult<std::vector<std::vector<TokenId>>> all_prompts(const TextRequest& request,
                                                         const OfferedModel& model) {
  std::vector<std::vector<TokenId>> prompts;
  if (request.endpoint == TextEndpoint::chat) {
    auto tokens = chat_tokens(request.chat, model, false);
    if (!tokens) return tokens.error();
    prompts.push_back(std::move(*tokens));
  }
  for (const PromptInput& prompt : request.prompts) {
    auto tokens = prompt_tokens(prompt, model, request.add_special_tokens);
    if (!tokens) return tokens.error();
    prompts.push_back(std::move(*tokens));
  }
  return prompts;
}

/// Sets max_tokens: what was asked for, else the endpoint's default, and never more than there is room for.
ApiResult<Tokens> output_room(const TextRequest& request, const OfferedModel& model, std::size_t longest) {
  const std::int64_t room = model.context.count() - std::int64_t(longest);
  const bool chat = request.endpoint == TextEndpoint::chat;
  if (room < 1) {
    const std::int64_t wanted = request.sampling.max_tokens.value_or(1);
    return ApiError{ErrorCode::context_length,
                    "This model's maximum context length is " + number(model.context.count()) +
                        " tokens. However, you requested " + number(std::int64_t(longest) + wanted) +
                        " tokens (" + number(std::int64_t(longest)) + " in the " +
                        (chat ? "messages" : "prompt") + ", " + number(wanted) +
                        " in the completion). Shorten the " + (chat ? "messages." : "prompt."),
                    chat ? "messages" : "prompt", Millis{0}};
  }
  std::int64_t fallback = kCompletionTokens;
  if (chat) fallback = model.defaults.max_new_tokens ? model.defaults.max_new_tokens->count() : room;
  return Tokens(std::min(room, request.sampling.max_tokens.value_or(fallback)));
}

Sampling merged(const SamplingWishes& wishes, const SamplingDefaults& defaults, std::uint64_t seed) {
  Sampling sampling;
  sampling.temperature = wishes.temperature.value_or(defaults.temperature);
  sampling.top_k = wishes.top_k.value_or(defaults.top_k);
  sampling.top_p = wishes.top_p.value_or(defaults.top_p);
  sampling.min_p = wishes.min_p.value_or(defaults.min_p);
  sampling.repetition_penalty = wishes.repetition_penalty.value_or(defaults.repetition_penalty);
  sampling.presence_penalty = wishes.presence_penalty.value_or(0.0);
  sampling.frequency_penalty = wishes.frequency_penalty.value_or(0.0);
  sampling.logit_bias = wishes.logit_bias;
  sampling.seed = wishes.seed ? std::uint64_t(*wishes.seed) : seed;
  sampling.min_tokens = Tokens(wishes.min_tokens.value_or(0));
  sampling.stop_tokens = defaults.stop_tokens;
  sampling.stop_tokens.insert(sampling.stop_tokens.end(), wishes.stop_tokens.begin(),
                              wishes.stop_tokens.end());
  sampling.ignore_eos = wishes.ignore_eos;
  sampling.logprobs = wishes.logprobs;
  if (sampling.top_p == 0.0) {  // OpenAI allows 0: only the most likely token is left.
    sampling.top_p = 1.0;
    sampling.top_k = 1;
  }
  return sampling;
}

/// A time to first token makes a deadline, unless the client names another class.
ApiResult<bool> set_class(const TextRequest& request, const OfferedModel& model, ClientCall& call) {
  const Urgency& urgency = request.urgency;
  call.ttl = urgency.ttl.value_or(Millis{0});
  call.ttft = urgency.ttft.value_or(model.ttft);
  const bool promised = call.ttft > Millis{0};
  call.service_class =
      urgency.service_class.value_or(promised ? ServiceClass::deadline : ServiceClass::normal);
  if (call.service_class == ServiceClass::deadline && !promised) {
    return invalid("ttft_slo_ms",
                   "The class 'deadline' needs a time to first token: send the header x-slo-ttft-ms or "
                   "the field ttft_slo_ms.");
  }
  // Who did not ask for a deadline would rather be late than be refused.
  call.requeue_when_late = urgency.requeue_when_late.value_or(!urgency.ttft.has_value());
  return true;
}

ApiResult<bool> check_tokens(const TextRequest& request, const OfferedModel& model) {
  std::vector<TokenId> biased;
  for (const LogitBias& bias : request.sampling.logit_bias) biased.push_back(bias.token);
  if (auto known = known_tokens(biased, model, "logit_bias"); !known) return known.error();
  if (auto known = known_tokens(request.sampling.stop_tokens, model, "stop_token_ids"); !known)
    return known.error();
  return true;
}

}  // namespace

ApiError broken_model(const OfferedModel& model) {
  return ApiError{ErrorCode::corrupt, "The model '" + model.id.text() + "' cannot be used: " + model.broken,
                  "model", Millis{0}};
}

ApiResult<std::vector<TokenId>> chat_tokens(const ChatTurns& chat, const OfferedModel& model, bool special) {
  auto rendered = model.text->render(chat);
  if (!rendered) return invalid("messages", rendered.error().context);
  return model.text->encode(*rendered, special);
}

ApiResult<ClientCall> prepare(const TextRequest& request, const OfferedModel& model,
                              const CallSetting& setting) {
  if (model.text == nullptr) return broken_model(model);
  if (auto known = check_tokens(request, model); !known) return known.error();
  auto prompts = all_prompts(request, model);
  if (!prompts) return prompts.error();
  std::size_t longest = 0;
  for (const auto& prompt : *prompts) longest = std::max(longest, prompt.size());
  if (std::any_of(prompts->begin(), prompts->end(), [](const auto& prompt) { return prompt.empty(); })) {
    return invalid("prompt", "Invalid 'prompt': a prompt without any token cannot be continued.");
  }
  const auto room = output_room(request, model, longest);
  if (!room) return room.error();
  ClientCall call{.model = model.id,
                  .tenant = setting.tenant,
                  .prompts = std::move(*prompts),
                  .n = request.n,
                  .sampling = merged(request.sampling, model.defaults, setting.seed),
                  .stop = request.stop,
                  .skip_special_tokens = request.skip_special_tokens,
                  .text = model.text,
                  .trace = setting.trace};
  call.sampling.max_tokens = *room;
  call.sampling.min_tokens = std::min(call.sampling.min_tokens, *room);
  if (auto set = set_class(request, model, call); !set) return set.error();
  if (std::int64_t(call.choices()) > setting.choices_max) {
    return invalid("n", "Invalid 'n': " + number(std::int64_t(call.choices())) +
                            " choices (prompts times n) are asked for, " + number(setting.choices_max) +
                            " is the limit.");
  }
  return call;
}

}  // namespace sangam
