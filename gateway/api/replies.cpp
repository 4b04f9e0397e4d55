// Builds the JSON of answers.
#include "gateway/api/replies.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sangam {
namespace {

namespace json = boost::json;

bool is_chat(const ReplyHead& head) {
  return head.endpoint == TextEndpoint::chat;
}

std::string_view finish_name(FinishReason finish) {
  return finish == FinishReason::length ? "length" : "stop";
}

json::array exact_bytes(std::string_view bytes) {
  json::array list;
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
}

bool is_printable(std::string_view bytes) {
  return printable(bytes) == bytes;
}

/// The name of a token in the older form, where a name must be unique among the alternatives: a part of a
/// code point is spelled out, as OpenAI does.
std::string token_name(std::string_view bytes) {
  if (is_printable(bytes)) return std::string(bytes);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    name += {'\\', 'x', kHex[value >> 4], kHex[value & 15]};
  }
  return name;
}

/// JSON has no infinity; OpenAI writes this number for what is impossible.
double finite(double logprob) {
  return std::max(logprob, -9999.0);
}

json::object chat_token(std::string_view bytes, double logprob) {
  return {{"token", printable(bytes)}, {"logprob", finite(logprob)}, {"bytes", exact_bytes(bytes)}};
}

json::value chat_logprobs(const std::vector<TokenPiece>& pieces) {
  json::array content;
  for (const TokenPiece& piece : pieces) {
    json::array top;
    for (const auto& other : piece.top) top.push_back(chat_token(other.bytes, other.logprob));
    json::object token = chat_token(piece.bytes, piece.logprob);
    token["top_logprobs"] = std::move(top);
    content.push_back(std::move(token));
  }
  return json::object{{"content", std::move(content)}, {"refusal", nullptr}};
}

json::value completion_logprobs(const std::vector<TokenPiece>& pieces) {
  json::array tokens, logprobs, tops, offsets;
  for (const TokenPiece& piece : pieces) {
    tokens.push_back(json::value(token_name(piece.bytes)));
    logprobs.push_back(finite(piece.logprob));
    offsets.push_back(piece.text_offset);
    json::object top;
    for (const auto& other : piece.top) top[token_name(other.bytes)] = finite(other.logprob);
    top[token_name(piece.bytes)] = finite(piece.logprob);  // The chosen token is always among them.
    tops.push_back(std::move(top));
  }
  return json::object{{"tokens", std::move(tokens)},
                      {"token_logprobs", std::move(logprobs)},
                      {"top_logprobs", std::move(tops)},
                      {"text_offset", std::move(offsets)}};
}

json::value logprobs_of(const ReplyHead& head, const std::vector<TokenPiece>& pieces) {
  if (!head.logprobs) return nullptr;
  return is_chat(head) ? chat_logprobs(pieces) : completion_logprobs(pieces);
}

json::object usage_of(const TokenUsage& usage) {
  return {{"prompt_tokens", usage.prompt.count()},
          {"completion_tokens", usage.completion.count()},
          {"total_tokens", usage.prompt.count() + usage.completion.count()},
          {"prompt_tokens_details", json::object{{"cached_tokens", usage.cached.count()}}}};
}

json::object framed(const ReplyHead& head, std::string_view object, json::array choices) {
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"service_tier", head.service_tier},
          {"choices", std::move(choices)}};
}

std::string chunk(const ReplyHead& head, json::array choices, const TokenUsage* usage = nullptr) {
  json::object frame =
      framed(head, is_chat(head) ? "chat.completion.chunk" : "text_completion", std::move(choices));
  if (usage != nullptr) {
    frame["usage"] = usage_of(*usage);
  } else if (head.include_usage) {
    frame["usage"] = nullptr;  // Asked for, and not yet known.
  }
  return json::serialize(frame);
}

}  // namespace

std::string_view tier_of(ServiceClass service_class) {
  if (service_class == ServiceClass::deadline) return "priority";
  return service_class == ServiceClass::best_effort ? "flex" : "default";
}

std::string role_chunk(const ReplyHead& head, std::size_t choice) {
  json::object delta{{"role", "assistant"}, {"content", ""}};
  return chunk(head, {json::object{{"index", choice},
                                   {"delta", std::move(delta)},
                                   {"logprobs", nullptr},
                                   {"finish_reason", nullptr}}});
}

std::string text_chunk(const ReplyHead& head, const TextDelta& delta) {
  json::object choice{{"index", delta.choice}};
  if (is_chat(head)) {
    choice["delta"] = json::object{{"content", delta.text}};
  } else {
    choice["text"] = delta.text;
  }
  choice["logprobs"] = logprobs_of(head, delta.pieces);
  choice["finish_reason"] = nullptr;
  return chunk(head, {std::move(choice)});
}

std::string finish_chunk(const ReplyHead& head, const ChoiceEnded& ended) {
  json::object choice{{"index", ended.choice}};
  if (is_chat(head)) {
    choice["delta"] = json::object{};
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_name(ended.finish);
  return chunk(head, {std::move(choice)});
}

std::string usage_chunk(const ReplyHead& head, const TokenUsage& usage) {
  return chunk(head, {}, &usage);
}

std::string whole_answer(const ReplyHead& head, const std::vector<ChoiceAnswer>& choices,
                         const TokenUsage& usage) {
  json::array list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    json::object choice{{"index", i}};
    if (is_chat(head)) {
      choice["message"] =
          json::object{{"role", "assistant"}, {"content", choices[i].text}, {"refusal", nullptr}};
    } else {
      choice["text"] = choices[i].text;
    }
    choice["logprobs"] = logprobs_of(head, choices[i].pieces);
    choice["finish_reason"] = finish_name(choices[i].finish);
    list.push_back(std::move(choice));
  }
  json::object frame = framed(head, is_chat(head) ? "chat.completion" : "text_completion", std::move(list));
  frame["usage"] = usage_of(usage);
  return json::serialize(frame);
}

}  // namespace sangam
