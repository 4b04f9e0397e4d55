// A sequence is given in slices: its prompt, then each token of the answer but the last by itself, so that all of them
// give logits in one step.
#include "actors/merger/evaluation/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

std::int64_t rows_of(const AnswerKey& key) { return std::int64_t(key.prompt.size() + key.answer.size()) - 1; }

float margin_of(std::span<const float> logits, TokenId token) {
  // The sampler takes the first of equals: an equal one before the token beats it, one behind it does not.
  float before = -std::numeric_limits<float>::infinity();
  float behind = before;
  for (std::size_t i = 0; i < token; ++i) before = std::max(before, logits[i]);
  for (std::size_t i = token + 1; i < logits.size(); ++i) behind = std::max(behind, logits[i]);
  const float own = logits[token];
  if (own == before && own >= behind) return -std::numeric_limits<float>::min();
  return own - std::max(before, behind);
}

}  // namespace

Evaluator::Evaluator(Model& model, std::int64_t rows_max) : model_(model), rows_max_(rows_max) {}

std::vector<AnswerScore> Evaluator::score(std::span<const AnswerKey> keys) {
  std::vector<AnswerScore> out;
  while (!keys.empty()) {
    std::int64_t rows = 0;
    std::size_t count = 0;
    while (count < keys.size() && (count == 0 || rows + rows_of(keys[count]) <= rows_max_)) rows += rows_of(keys[count++]);
    score_batch(keys.first(count), out);
    keys = keys.subspan(count);
  }
  return out;
}

void Evaluator::score_batch(std::span<const AnswerKey> keys, std::vector<AnswerScore>& out) {
  std::int64_t longest = 0;
  std::size_t wanted = 0;
  for (const AnswerKey& key : keys) {
    SANGAM_ASSERT(!key.prompt.empty() && !key.answer.empty(), key.prompt.size(), key.answer.size());
    longest = std::max(longest, rows_of(key));
    wanted += key.answer.size();
  }
  const std::size_t page_bytes = std::size_t(longest) * model_.kv_bytes_per_token();
  memory_.resize(std::max(memory_.size(), page_bytes * keys.size()));
  const auto vocabulary = std::size_t(model_.config().vocab_size);
  logits_.resize(std::max(logits_.size(), wanted * vocabulary));

  std::vector<PageId> pages;
  for (std::size_t i = 0; i < keys.size(); ++i) pages.push_back(PageId(i));
  std::vector<SequenceSlice> slices;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::span<const PageId> page(&pages[i], 1);
    slices.push_back({keys[i].prompt, 0, page, true});
    for (std::size_t k = 0; k + 1 < keys[i].answer.size(); ++k) {
      slices.push_back({std::span(keys[i].answer).subspan(k, 1), std::int64_t(keys[i].prompt.size() + k), page, true});
    }
  }
  model_.forward(slices, {memory_.data(), page_bytes}, std::span(logits_).first(wanted * vocabulary));

  std::size_t row = 0;
  for (const AnswerKey& key : keys) {
    AnswerScore score{true, std::numeric_limits<float>::infinity()};
    for (const TokenId token : key.answer) {
      const std::span<const float> logits = std::span(logits_).subspan(row++ * vocabulary, vocabulary);
      // Logits that are no numbers say nothing, and nothing is wrong.
      const bool sound = std::none_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); });
      score.margin = std::min(score.margin, sound ? margin_of(logits, token) : -std::numeric_limits<float>::infinity());
    }
    score.right = score.margin >= 0.0f;
    out.push_back(score);
  }
}

double danger_of(std::span<const AnswerScore> scores) {
  double sum = 0.0;
  // A margin beyond thirty is as safe, or as lost, as can be told.
  for (const AnswerScore& score : scores) sum += std::log1p(std::exp(-std::clamp(double(score.margin), -30.0, 30.0)));
  return scores.empty() ? 0.0 : sum / double(scores.size());
}

}  // namespace sangam::merging
