// From what a client asked for to a call that can run: rendered, tokenized, bounded by the model's context.
#pragma once

#include <cstdint>

#include "gateway/api/offered_model.hpp"
#include "gateway/api/text_request.hpp"
#include "gateway/core/client_call.hpp"

namespace sangam {

/// What the shell knows beside the body.
struct CallSetting {
  TenantId tenant{"default"};
  TraceContext trace{};
  std::uint64_t seed = 0;  ///< For a request that names none.
  std::int64_t choices_max = 64;
};

[[nodiscard]] ApiResult<ClientCall> prepare(const TextRequest& request, const OfferedModel& model,
                                            const CallSetting& setting);

/// The tokens of a chat: what prepare submits, and what /tokenize answers.
[[nodiscard]] ApiResult<std::vector<TokenId>> chat_tokens(const ChatTurns& chat, const OfferedModel& model,
                                                          bool add_special_tokens);

/// A broken model's answer to everything.
[[nodiscard]] ApiError broken_model(const OfferedModel& model);

}  // namespace sangam
