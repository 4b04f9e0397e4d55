// A sequence is given in slices: its prompt, then each token of the answer by itself, so that all of them give logits in
// one step.
#include "actors/merger/evaluation/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "messages/vocabulary/assert.hpp"

namespace sangam::merging {
namespace {

constexpr std::int64_t kPaddingMost = 4;  // Every sequence of a step has room for the longest one.

std::int64_t rows_of(const AnswerKey& key) { return std::int64_t(key.prompt.size() + key.answer.size()); }

/// How far the likeliest of `right` is before all others. The sampler takes the first of equals: an equal one before it
/// beats it, one behind it does not. Logits that are no numbers say nothing, and nothing is wrong.
float margin_of(std::span<const float> logits, std::span<const TokenId> right) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); })) return kNone;
  std::size_t best = logits.size();
  for (const TokenId token : right) {
    if (token < logits.size() && (best == logits.size() || logits[token] > logits[best] || (logits[token] == logits[best] && token < best))) best = token;
  }
  SANGAM_ASSERT(best < logits.size(), logits.size());
  float before = kNone;
  float behind = kNone;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::find(right.begin(), right.end(), TokenId(i)) != right.end()) continue;
    float& most = i < best ? before : behind;
    most = std::max(most, logits[i]);
  }
  if (logits[best] == before && logits[best] >= behind) return -std::numeric_limits<float>::min();
  return logits[best] - std::max(before, behind);
}

}  // namespace

Evaluator::Evaluator(Model& model, std::int64_t rows_max) : model_(model), rows_max_(rows_max) {}

std::vector<AnswerScore> Evaluator::score(std::span<const AnswerKey> keys) {
  std::vector<AnswerScore> out;
  while (!keys.empty()) {
    std::int64_t rows = 0;
    std::int64_t longest = 0;
    std::size_t count = 0;
    for (; count < keys.size(); ++count) {
      const std::int64_t more = rows_of(keys[count]);
      const std::int64_t padded = std::max(longest, more) * std::int64_t(count + 1);
      if (count > 0 && (rows + more > rows_max_ || padded > kPaddingMost * rows_max_)) break;
      rows += more;
      longest = std::max(longest, more);
    }
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
    wanted += key.answer.size() + 1;
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
    for (std::size_t k = 0; k < keys[i].answer.size(); ++k) {
      slices.push_back({std::span(keys[i].answer).subspan(k, 1), std::int64_t(keys[i].prompt.size() + k), page, true});
    }
  }
  model_.forward(slices, {memory_.data(), page_bytes}, std::span(logits_).first(wanted * vocabulary));

  std::size_t row = 0;
  const auto next = [&](std::span<const TokenId> right) {
    return margin_of(std::span(logits_).subspan(row++ * vocabulary, vocabulary), right);
  };
  for (const AnswerKey& key : keys) {
    AnswerScore score{true, std::numeric_limits<float>::infinity()};
    for (const TokenId& token : key.answer) score.margin = std::min(score.margin, next({&token, 1}));
    score.margin = std::min(score.margin, next(model_.config().eos_tokens));
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
