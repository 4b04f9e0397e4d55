// Whether a model would say what it should, found without decoding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/model/model.hpp"

namespace sangam::merging {

/// After the prompt, each token of the answer has to be the likeliest. To ask for an end, it ends with an end token.
struct AnswerKey {
  std::vector<TokenId> prompt;  ///< At least one token.
  std::vector<TokenId> answer;  ///< At least one.
};

struct AnswerScore {
  bool right = false;
  /// The least, over the answer's tokens, of the token's logit less the largest other one: below 0 where it is wrong.
  float margin = 0.0f;
};

/// Greedy decoding gives the answer exactly if each of its tokens is the likeliest after those before it. So prompt and
/// answer pass through the model at once; results are those of decoding bit for bit, because a row's result does not
/// depend on the rows beside it.
class Evaluator {
 public:
  /// `model` outlives the evaluator. Steps of about `rows_max` rows.
  explicit Evaluator(Model& model, std::int64_t rows_max = 1024);

  /// By key. All tokens are in the model's vocabulary.
  [[nodiscard]] std::vector<AnswerScore> score(std::span<const AnswerKey> keys);

 private:
  void score_batch(std::span<const AnswerKey> keys, std::vector<AnswerScore>& out);

  Model& model_;
  std::int64_t rows_max_;
  std::vector<std::byte> memory_;  ///< A page for each sequence of a step.
  std::vector<float> logits_;
};

/// The mean of log(1 + exp(-margin)): how much the answers are in danger, also where all are right.
[[nodiscard]] double danger_of(std::span<const AnswerScore> scores);

}  // namespace sangam::merging
