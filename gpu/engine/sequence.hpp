// One request while the engine works on it.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpu/engine/kv_hand_over.hpp"
#include "gpu/engine/kv_pages.hpp"
#include "gpu/engine/sampling.hpp"
#include "gpu/model/model.hpp"
#include "messages/vocabulary/request.hpp"

namespace sangam {

/// Who comes first where pages or places are short: the class; then who has fewer live requests of its own
/// class and model before it; of equals, who has been at that place longer. Only the end of a request changes
/// it, so the first in rank always moves on and all others follow.
///
/// Of n models with live requests of one class, each model's first therefore waits for at most n - 1 others,
/// each model's k-th has at most k * n - 1 before it, and a burst of one model keeps only the places and
/// pages that the others' earlier ones leave.
struct Rank {
  ServiceClass service_class = ServiceClass::normal;
  std::int64_t place = 0;   ///< In the line of its class and model; 0: the first.
  std::uint64_t since = 0;  ///< A count of all changes of place.

  auto operator<=>(const Rank&) const = default;
};

/// Waits without pages, or runs with pages for all that it has computed.
struct Sequence {
  explicit Sequence(Run request)
      : history(request.sampling, request.prompt, request.generated),
        prompt_length(std::int64_t(request.prompt.size())),
        tokens(std::exchange(request.prompt, {})) {
    const std::vector<TokenId> generated = std::exchange(request.generated, {});
    tokens.insert(tokens.end(), generated.begin(), generated.end());
    run = std::move(request);
  }

  Rank rank;  ///< The roster's.
  Run run;    ///< Its `prompt` and `generated` have moved into `tokens`.
  TokenHistory history;
  std::int64_t prompt_length = 0;
  std::vector<TokenId> tokens;  ///< Prompt, then all generated tokens, of earlier attempts too.
  std::int64_t length_max = 0;  ///< Ends when there are this many tokens.
  PrefixRealm realm;

  KvHold kv;
  std::int64_t computed = 0;  ///< Tokens whose K and V are in the pages.
  std::int64_t cached = 0;    ///< Of the prompt, that were there when it ran for the first time.
  bool running = false;
  bool admitted = false;   ///< Once.
  KvSink* sink = nullptr;  ///< Of a prompt for another engine: nobody takes its pages away meanwhile.
  std::int64_t told = 0;   ///< Positions of which the sink has heard.
  bool prefilled = false;  ///< Once: what is computed again after a preemption is no prefill.

  [[nodiscard]] std::int64_t length() const { return std::int64_t(tokens.size()); }
  [[nodiscard]] std::int64_t missing() const { return length() - computed; }
  [[nodiscard]] std::int64_t pages_for(std::int64_t length) const {
    return (length + realm.tokens_per_page - 1) / realm.tokens_per_page;
  }
  /// What may come from the prefix cache: the last token is always computed, since its logits are wanted.
  [[nodiscard]] std::span<const TokenId> shareable() const {
    return std::span(tokens).first(tokens.size() - 1);
  }
};

}  // namespace sangam
