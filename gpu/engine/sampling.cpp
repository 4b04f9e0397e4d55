// The sampler. Sums are in double and in one fixed order, so that a draw can be repeated bit for bit.
#include "gpu/engine/sampling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "gpu/engine/philox.hpp"

namespace sangam {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
/// Below it dividing by the temperature overflows, and the draw would be greedy anyway (vLLM has the same).
constexpr double kGreedyBelow = 1e-5;
/// Of a bias or penalty: far beyond any use, and no logit overflows by it.
constexpr double kLargest = 1e6;

struct Candidate {
  TokenId token = 0;
  double weight = 0;  ///< exp((logit - largest) / temperature); the largest weighs 1.
};

/// Most likely first; of equals the lower id.
bool likelier(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

/// In lanes, so that the compiler can use vector instructions; a maximum does not depend on the order.
float largest_of(std::span<const float> logits) {
  std::array<float, 16> lanes;
  lanes.fill(kNever);
  std::size_t i = 0;
  for (; i + lanes.size() <= logits.size(); i += lanes.size()) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
  }
  for (; i < logits.size(); ++i) lanes[0] = std::max(lanes[0], logits[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

std::size_t index_of_largest(std::span<const float> logits) {
  return std::size_t(std::find(logits.begin(), logits.end(), largest_of(logits)) - logits.begin());
}

Result<void> check_logits(std::span<const float> logits) {
  const auto wrong = [](float logit) { return !(logit < -kNever); };  // plus infinity or no number
  unsigned any_wrong = 0;
  for (const float logit : logits) any_wrong |= unsigned(wrong(logit));
  if (any_wrong != 0) {
    const auto first = std::find_if(logits.begin(), logits.end(), wrong);
    return make_error(ErrorCode::internal, "engine: the model gave logit " + std::to_string(*first) +
                                               " for token " + std::to_string(first - logits.begin()) +
                                               "; its weights or its arithmetic are at fault");
  }
  if (largest_of(logits) != kNever) return {};
  return make_error(ErrorCode::internal, "engine: the model gave minus infinity for every token");
}

PositionLogprobs logprobs_of(std::span<const float> logits, std::size_t count) {
  const double largest = largest_of(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  const double log_sum = largest + std::log(sum);

  std::vector<TokenId> best(logits.size());
  std::iota(best.begin(), best.end(), TokenId{0});
  count = std::min(count, best.size());
  std::partial_sort(
      best.begin(), best.begin() + std::ptrdiff_t(count), best.end(),
      [&](TokenId a, TokenId b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  PositionLogprobs result;
  for (std::size_t i = 0; i < count; ++i) result.top.push_back({best[i], logits[best[i]] - log_sum});
  result.chosen.logprob = -log_sum;  // completed when the token is known
  return result;
}

bool stop_counts(const Sampling& sampling, std::int64_t index) {
  return !sampling.ignore_eos && index >= sampling.min_tokens.count();
}

void apply_bias(std::span<float> logits, const Sampling& sampling, std::int64_t index) {
  if (!sampling.ignore_eos && !stop_counts(sampling, index)) {
    for (const TokenId token : sampling.stop_tokens) {
      if (token < logits.size()) logits[token] = kNever;
    }
  }
  for (const LogitBias& bias : sampling.logit_bias) logits[bias.token] += float(bias.bias);
}

std::vector<Candidate> candidates(std::span<const float> logits, const Sampling& sampling) {
  const double largest = largest_of(logits);
  std::vector<Candidate> result;
  result.reserve(sampling.min_p > 0 ? 64 : logits.size());
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double weight = std::exp((logits[token] - largest) / sampling.temperature);
    if (weight > 0 && weight >= sampling.min_p) result.push_back({TokenId(token), weight});
  }
  return result;
}

/// Keeps the k largest, and what equals the k-th.
void keep_top_k(std::vector<Candidate>& all, std::int64_t k) {
  if (k <= 0 || k >= std::int64_t(all.size())) return;
  std::nth_element(all.begin(), all.begin() + (k - 1), all.end(), likelier);
  const double least = all[std::size_t(k - 1)].weight;
  std::erase_if(all, [least](const Candidate& c) { return c.weight < least; });
}

/// Sums and draws go by rising id: filters leave any order.
void restore_order(std::vector<Candidate>& all) {
  const auto by_id = [](const Candidate& a, const Candidate& b) { return a.token < b.token; };
  if (!std::is_sorted(all.begin(), all.end(), by_id)) std::sort(all.begin(), all.end(), by_id);
}

double sum_of(std::span<const Candidate> all) {
  return std::accumulate(all.begin(), all.end(), 0.0,
                         [](double sum, const Candidate& c) { return sum + c.weight; });
}

/// Keeps a token if those that are likelier have less than `p` together, and the likeliest in any case. Sorts
/// in growing blocks: where few tokens have nearly all of the weight, only the first block.
void keep_top_p(std::vector<Candidate>& all, double p) {
  if (p >= 1) return;
  restore_order(all);
  const double wanted = p * sum_of(all);
  double kept = 0;
  auto next = all.begin();
  for (std::ptrdiff_t block = 64; next != all.end(); block *= 4) {
    const auto block_end = next + std::min(block, all.end() - next);
    if (block_end != all.end()) std::nth_element(next, block_end, all.end(), likelier);
    std::sort(next, block_end, likelier);
    for (; next != block_end; kept += next++->weight) {
      if (next == all.begin() || kept < wanted) continue;
      all.erase(next, all.end());
      return;
    }
  }
}

TokenId draw(std::span<const float> logits, const Sampling& sampling, std::int64_t index) {
  if (sampling.temperature < kGreedyBelow) return TokenId(index_of_largest(logits));
  std::vector<Candidate> all = candidates(logits, sampling);
  keep_top_k(all, sampling.top_k);
  keep_top_p(all, sampling.top_p);
  restore_order(all);

  double left = uniform_draw(sampling.seed, std::uint64_t(index)) * sum_of(all);
  for (const Candidate& candidate : all) {
    left -= candidate.weight;
    if (left < 0) return candidate.token;
  }
  return all.back().token;  // rounding let the draw pass the end
}

Error refused(const char* field, const std::string& value, const char* must) {
  return make_error(ErrorCode::invalid_input,
                    std::string("sampling: ") + field + "=" + value + " must be " + must);
}

}  // namespace

Result<void> check_sampling(const Sampling& s, std::int64_t vocab_size) {
  const auto number = [](double value) { return std::to_string(value); };
  const auto moderate = [](double value) { return value >= -kLargest && value <= kLargest; };
  if (!(s.temperature >= 0 && std::isfinite(s.temperature)))
    return refused("temperature", number(s.temperature), "finite and not negative");
  if (s.top_k < 0) return refused("top_k", std::to_string(s.top_k), "0 (all) or more");
  if (!(s.top_p > 0 && s.top_p <= 1)) return refused("top_p", number(s.top_p), "in (0, 1]");
  if (!(s.min_p >= 0 && s.min_p <= 1)) return refused("min_p", number(s.min_p), "in [0, 1]");
  if (!(s.repetition_penalty >= 1 / kLargest && s.repetition_penalty <= kLargest))
    return refused("repetition_penalty", number(s.repetition_penalty), "in [1e-6, 1e6]");
  if (!moderate(s.presence_penalty))
    return refused("presence_penalty", number(s.presence_penalty), "in [-1e6, 1e6]");
  if (!moderate(s.frequency_penalty))
    return refused("frequency_penalty", number(s.frequency_penalty), "in [-1e6, 1e6]");
  if (s.max_tokens < Tokens{1})
    return refused("max_tokens", std::to_string(s.max_tokens.count()), "at least 1");
  for (const LogitBias& bias : s.logit_bias) {
    if (!moderate(bias.bias)) return refused("logit_bias", number(bias.bias), "in [-1e6, 1e6]");
    if (std::int64_t(bias.token) >= vocab_size) {
      return refused("logit_bias token", std::to_string(bias.token),
                     ("below the vocabulary's size " + std::to_string(vocab_size)).c_str());
    }
  }
  return {};
}

TokenHistory::TokenHistory(const Sampling& sampling, std::span<const TokenId> prompt,
                           std::span<const TokenId> generated)
    : repetition_(sampling.repetition_penalty),
      presence_(sampling.presence_penalty),
      frequency_(sampling.frequency_penalty) {
  if (repetition_ != 1) seen_.insert(prompt.begin(), prompt.end());
  for (const TokenId token : generated) add(token);
}

void TokenHistory::add(TokenId generated) {
  ++generated_;
  if (repetition_ != 1) seen_.insert(generated);
  if (presence_ != 0 || frequency_ != 0) ++counts_[generated];
}

void TokenHistory::penalise(std::span<float> logits) const {
  for (const TokenId token : seen_) {
    float& logit = logits[token];
    logit = float(logit > 0 ? logit / repetition_ : logit * repetition_);
  }
  for (const auto& [token, count] : counts_) {
    logits[token] -= float(frequency_ * double(count));
    logits[token] -= float(presence_);
  }
}

Result<Choice> choose(std::span<float> logits, const Sampling& sampling, const TokenHistory& history) {
  if (auto checked = check_logits(logits); !checked) return checked.error();
  const std::int64_t index = history.generated();
  Choice choice;
  std::vector<float> raw;
  if (sampling.logprobs >= 0) {
    choice.logprobs = logprobs_of(logits, std::size_t(sampling.logprobs));
    raw.assign(logits.begin(), logits.end());
  }
  apply_bias(logits, sampling, index);
  history.penalise(logits);
  if (largest_of(logits) == kNever)
    return make_error(ErrorCode::invalid_input, "sampling: min_tokens forbids every possible token");
  choice.token = draw(logits, sampling, index);
  choice.stops = stop_counts(sampling, index) &&
                 std::find(sampling.stop_tokens.begin(), sampling.stop_tokens.end(), choice.token) !=
                     sampling.stop_tokens.end();
  if (choice.logprobs) {
    choice.logprobs->chosen.token = choice.token;
    choice.logprobs->chosen.logprob += raw[choice.token];
  }
  return choice;
}

}  // namespace sangam
