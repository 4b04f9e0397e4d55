// From logits to the next token: penalties, bias, temperature, filters and the draw, in vLLM's order.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "messages/vocabulary/request.hpp"

namespace sangam {

/// Refuses what has no meaning for a vocabulary of this size, by field and value.
Result<void> check_sampling(const Sampling& sampling, std::int64_t vocab_size);

/// Which tokens a request has seen, as far as its penalties ask for it.
class TokenHistory {
 public:
  TokenHistory(const Sampling& sampling, std::span<const TokenId> prompt, std::span<const TokenId> generated);

  void add(TokenId generated);
  [[nodiscard]] std::int64_t generated() const { return generated_; }

  /// Repetition over prompt and output (divides positive logits, multiplies negative ones); presence and
  /// frequency over the output.
  void penalise(std::span<float> logits) const;

 private:
  double repetition_;
  double presence_;
  double frequency_;
  std::int64_t generated_ = 0;
  std::unordered_set<TokenId> seen_;                  ///< Kept only if repetition is penalised,
  std::unordered_map<TokenId, std::int64_t> counts_;  ///< and this only with one of the other two.
};

struct Choice {
  TokenId token = 0;
  bool stops = false;  ///< A stop token, and late enough to count.
  std::optional<PositionLogprobs> logprobs;
};

/// The token at index `history.generated()`; `logits` (vocab_size) are spent. The same logits, request and
/// history give the same token. Logits that are no numbers are an error.
Result<Choice> choose(std::span<float> logits, const Sampling& sampling, const TokenHistory& history);

}  // namespace sangam
