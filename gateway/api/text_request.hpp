// A chat or text completion as a client asked for it: parsed and checked, before any model is looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/api/errors.hpp"
#include "gateway/api/model_text.hpp"
#include "messages/vocabulary/request.hpp"

namespace sangam {

enum class TextEndpoint : std::uint8_t { chat, completions };

using PromptInput = std::variant<std::string, std::vector<TokenId>>;

/// What a client may say about urgency, in the body or in headers (which win).
struct Urgency {
  std::optional<Millis> ttft;  ///< Time to the first token.
  std::optional<Millis> ttl;   ///< Not to be begun later than this.
  std::optional<ServiceClass> service_class;
  std::optional<bool> requeue_when_late;
};

/// Absent fields are the model's to fill in.
struct SamplingWishes {
  std::optional<double> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<std::int64_t> top_k, max_tokens, min_tokens, seed;
  std::vector<LogitBias> logit_bias;
  std::vector<TokenId> stop_tokens;
  bool ignore_eos = false;
  std::int64_t logprobs = -1;
};

struct TextRequest {
  TextEndpoint endpoint = TextEndpoint::chat;
  std::string model;
  ChatTurns chat;                    ///< chat only
  std::vector<PromptInput> prompts;  ///< completions only
  std::int64_t n = 1;
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
  bool add_special_tokens = true;  ///< completions; a chat template writes its own.
  bool skip_special_tokens = true;
  std::vector<std::string> stop;
  SamplingWishes sampling;
  Urgency urgency;
};

/// A field that is null counts as absent; an unknown field is ignored.
[[nodiscard]] ApiResult<TextRequest> parse_chat(std::string_view body);
[[nodiscard]] ApiResult<TextRequest> parse_completion(std::string_view body);

/// For /tokenize: `prompt` or `messages`, as vLLM has it.
struct TokenizeRequest {
  std::string model;
  std::optional<std::string> prompt;
  ChatTurns chat;
  bool add_special_tokens = true;
  bool token_texts = false;
};
struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> tokens;
};
[[nodiscard]] ApiResult<TokenizeRequest> parse_tokenize(std::string_view body);
[[nodiscard]] ApiResult<DetokenizeRequest> parse_detokenize(std::string_view body);

}  // namespace sangam
