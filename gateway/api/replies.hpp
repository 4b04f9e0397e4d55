// The JSON that clients get: chunks of a stream, whole answers, lists of models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/api/offered_model.hpp"
#include "gateway/api/text_request.hpp"
#include "gateway/core/client_call.hpp"

namespace sangam {

/// What all chunks of one answer share, byte for byte.
struct ReplyHead {
  TextEndpoint endpoint = TextEndpoint::chat;
  std::string id;            ///< "chatcmpl-..." or "cmpl-..."
  std::int64_t created = 0;  ///< Unix seconds.
  std::string model;         ///< As the client spelled it.
  std::string service_tier;  ///< The tier that was used.
  bool include_usage = false;
  bool logprobs = false;
};

[[nodiscard]] std::string_view tier_of(ServiceClass service_class);

/// Chunks: without the "data: " of the stream.
[[nodiscard]] std::string role_chunk(const ReplyHead& head, std::size_t choice);
[[nodiscard]] std::string text_chunk(const ReplyHead& head, const TextDelta& delta);
[[nodiscard]] std::string finish_chunk(const ReplyHead& head, const ChoiceEnded& ended);
[[nodiscard]] std::string usage_chunk(const ReplyHead& head, const TokenUsage& usage);

/// One choice, gathered.
struct ChoiceAnswer {
  std::string text;
  std::vector<TokenPiece> pieces;
  FinishReason finish = FinishReason::none;
};
[[nodiscard]] std::string whole_answer(const ReplyHead& head, const std::vector<ChoiceAnswer>& choices,
                                       const TokenUsage& usage);

struct ModelListing {
  const OfferedModel* model = nullptr;
  std::string name;   ///< The id or an alias.
  std::string state;  ///< ready, waiting (no instance) or broken
};
[[nodiscard]] std::string model_json(const ModelListing& listing, std::int64_t created);
[[nodiscard]] std::string models_json(const std::vector<ModelListing>& listings, std::int64_t created);

[[nodiscard]] std::string tokenize_json(const std::vector<TokenId>& tokens, Tokens context,
                                        const std::vector<std::string>* texts);
[[nodiscard]] std::string detokenize_json(std::string_view text);

/// As JSON text may carry it: bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string printable(std::string_view bytes);

}  // namespace sangam
