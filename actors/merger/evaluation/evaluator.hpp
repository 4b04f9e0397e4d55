// Whether a model would say what it should, found without decoding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/model/model.hpp"

namespace sangam::merging {

/// After the prompt each token of the answer has to be the likeliest, and after the answer an end token of the model.
struct AnswerKey {
  std::vector<TokenId> prompt;  ///< At least one token.
  std::vector<TokenId> answer;  ///< At least one, without an end.
};

struct AnswerScore {
  bool right = false;
  /// The least, over the answer's tokens and its end, of the token's logit less the largest wrong one: below 0 where it
  /// is wrong.
  float margin = 0.0f;
};

/// Greedy decoding gives the answer exactly if each of its tokens is the likeliest after those before it. So prompt and
/// answer pass through the model at once; results are those of decoding bit for bit, because a row's result does not
/// depend on the rows beside it.
class Evaluator {
 public:
  /// `model`, which has an end token in its vocabulary, outlives the evaluator. Steps of about `rows_max` rows, with
  /// keys and values for four times as many at most.
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
