// The sampler against published vectors, hand calculation and the law of large numbers.
#include "gpu/engine/sampling.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "gpu/engine/philox.hpp"

using namespace sangam;

namespace {

/// Logits of a distribution in proportion to `weights`.
std::vector<float> logits_of(const std::vector<double>& weights) {
  std::vector<float> logits;
  for (const double weight : weights) logits.push_back(float(std::log(weight)));
  return logits;
}

TokenId choose_at(std::vector<float> logits, const Sampling& sampling, std::size_t index) {
  const std::vector<TokenId> generated(index, 0);
  return choose(logits, sampling, TokenHistory(sampling, {}, generated)).value().token;
}

/// How often each token is drawn, at one position, over so many seeds.
std::vector<double> shares(const std::vector<double>& weights, Sampling sampling, int draws) {
  std::vector<double> counts(weights.size());
  for (int seed = 0; seed < draws; ++seed) {
    sampling.seed = std::uint64_t(seed);
    counts[choose_at(logits_of(weights), sampling, 3)] += 1.0 / draws;
  }
  return counts;
}

void check_shares(const std::vector<double>& drawn, const std::vector<double>& expected, int draws) {
  const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
  for (std::size_t token = 0; token < expected.size(); ++token) {
    const double share = expected[token] / sum;
    CAPTURE(token);
    CHECK(std::abs(drawn[token] - share) <= 4.5 * std::sqrt(share * (1 - share) / draws) + 1e-9);
  }
}

const std::vector<double> kOneToEight{1, 2, 3, 4, 5, 6, 7, 8};

}  // namespace

TEST_CASE("Philox gives the vectors that its authors published") {
  using Words = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a draw depends on all bits of seed and position") {
  // From an implementation in Python.
  CHECK(uniform_draw(0, 0) == 0.3990464708489645);
  CHECK(uniform_draw(1, 0) == 0.8902591729757107);
  CHECK(uniform_draw(0, 1) == 0.9722412015223156);
  CHECK(uniform_draw(42, 7) == 0.3583605106473168);
  CHECK(uniform_draw(~std::uint64_t{0}, std::uint64_t{1} << 32) == 0.5222049713928888);
}

TEST_CASE("temperature 0 takes the largest logit, of equals the lowest id") {
  Sampling greedy;
  greedy.temperature = 0;
  CHECK(choose_at({1, 5, 3, 5}, greedy, 0) == 1);
  greedy.top_k = 2;
  greedy.top_p = 0.1;
  CHECK(choose_at({1, 5, 3, 5}, greedy, 9) == 1);
}

TEST_CASE("draws follow the inverse of the distribution at the position's uniform number") {
  // From a Python implementation of Philox and of the inverse: seed 2024, positions 0 to 23.
  const std::vector<TokenId> all{6, 4, 5, 6, 0, 5, 7, 4, 1, 7, 1, 4, 3, 4, 2, 6, 4, 6, 6, 4, 2, 4, 7, 7};
  const std::vector<TokenId> best_four{6, 5, 6, 6, 4, 6, 7, 5, 4, 7, 4, 5,
                                       5, 5, 4, 7, 5, 7, 7, 5, 4, 5, 7, 7};
  const std::vector<TokenId> at_half{6, 5, 6, 6, 1, 6, 7, 5, 3, 7, 2, 5, 4, 5, 3, 7, 5, 7, 7, 5, 3, 5, 7, 7};
  Sampling plain;
  plain.seed = 2024;
  Sampling top_k = plain;
  top_k.top_k = 4;
  Sampling cooler = plain;
  cooler.temperature = 0.5;
  for (std::size_t position = 0; position < all.size(); ++position) {
    CAPTURE(position);
    CHECK(choose_at(logits_of(kOneToEight), plain, position) == all[position]);
    CHECK(choose_at(logits_of(kOneToEight), top_k, position) == best_four[position]);
    CHECK(choose_at(logits_of(kOneToEight), cooler, position) == at_half[position]);
  }
}

TEST_CASE("each filter leaves the shares that its definition says") {
  constexpr int kDraws = 20'000;
  Sampling sampling;
  check_shares(shares(kOneToEight, sampling, kDraws), kOneToEight, kDraws);
  SUBCASE("top-k keeps what equals the k-th") {
    sampling.top_k = 2;
    check_shares(shares({4, 1, 4, 4, 2}, sampling, kDraws), {4, 0, 4, 4, 0}, kDraws);
  }
  SUBCASE("top-p keeps a token while likelier ones have less than p") {
    // Of 36: 8, 15, 21 (0.583), 26 (0.722): at p = 0.6 the fourth still enters.
    sampling.top_p = 0.6;
    check_shares(shares(kOneToEight, sampling, kDraws), {0, 0, 0, 0, 5, 6, 7, 8}, kDraws);
  }
  SUBCASE("top-p keeps at least the likeliest") {
    sampling.top_p = 1e-9;
    check_shares(shares(kOneToEight, sampling, kDraws), {0, 0, 0, 0, 0, 0, 0, 1}, kDraws);
  }
  SUBCASE("min-p is relative to the likeliest") {
    sampling.min_p = 0.49;  // of 8: 3.92
    check_shares(shares(kOneToEight, sampling, kDraws), {0, 0, 0, 4, 5, 6, 7, 8}, kDraws);
  }
  SUBCASE("top-p counts what top-k has left") {
    // Of 8 + 7 + 6 = 21: 8 (0.381), 15 (0.714): at 0.7 two stay; of all 36 it would have been four.
    sampling.top_k = 3;
    sampling.top_p = 0.7;
    check_shares(shares(kOneToEight, sampling, kDraws), {0, 0, 0, 0, 0, 0, 7, 8}, kDraws);
  }
  SUBCASE("temperature 2 takes the square root of the weights") {
    sampling.temperature = 2;
    check_shares(shares({1, 4, 9, 16}, sampling, kDraws), {1, 2, 3, 4}, kDraws);
  }
}

TEST_CASE("penalties are those of vLLM and HF: repetition over all, the others over the output") {
  Sampling sampling;
  sampling.repetition_penalty = 2;
  sampling.presence_penalty = 0.5;
  sampling.frequency_penalty = 0.25;
  const std::vector<TokenId> prompt{0, 1, 1};
  const std::vector<TokenId> generated{2, 3, 3, 3};
  std::vector<float> logits{4, -4, 4, -4, 4};
  TokenHistory(sampling, prompt, generated).penalise(logits);
  CHECK(logits[0] == 2);                       // 4 / 2
  CHECK(logits[1] == -8);                      // -4 * 2, once however often
  CHECK(logits[2] == doctest::Approx(1.25));   // 4 / 2 - 0.5 - 0.25
  CHECK(logits[3] == doctest::Approx(-9.25));  // -4 * 2 - 0.5 - 3 * 0.25
  CHECK(logits[4] == 4);
}

TEST_CASE("a history that grew token by token equals one that came whole") {
  Sampling sampling;
  sampling.repetition_penalty = 1.3;
  sampling.frequency_penalty = 0.7;
  const std::vector<TokenId> prompt{1, 2};
  TokenHistory grown(sampling, prompt, {});
  for (const TokenId token : {4u, 4u, 0u}) grown.add(token);
  std::vector<float> one{1, 2, 3, 4, 5};
  std::vector<float> two = one;
  grown.penalise(one);
  TokenHistory(sampling, prompt, std::vector<TokenId>{4, 4, 0}).penalise(two);
  CHECK(one == two);
  CHECK(grown.generated() == 3);
}

TEST_CASE("a bias moves the choice and shows in no logprob") {
  Sampling sampling;
  sampling.temperature = 0;
  sampling.logit_bias = {{2, 100.0}, {0, -1.0}};
  sampling.logprobs = 2;
  std::vector<float> logits = logits_of({4, 3, 1});
  const auto choice = choose(logits, sampling, TokenHistory(sampling, {}, {}));
  REQUIRE(choice);
  CHECK(choice->token == 2);
  REQUIRE(choice->logprobs.has_value());
  CHECK(choice->logprobs->chosen.token == 2);
  CHECK(choice->logprobs->chosen.logprob == doctest::Approx(std::log(1.0 / 8)));
  REQUIRE(choice->logprobs->top.size() == 2);
  CHECK(choice->logprobs->top[0].token == 0);
  CHECK(choice->logprobs->top[0].logprob == doctest::Approx(std::log(4.0 / 8)));
  CHECK(choice->logprobs->top[1].logprob == doctest::Approx(std::log(3.0 / 8)));
}

TEST_CASE("logprobs are of the raw logits, best first, of equals the lower id first") {
  Sampling sampling;
  sampling.temperature = 0.1;
  sampling.top_k = 1;
  sampling.logprobs = 10;
  std::vector<float> logits = logits_of({2, 5, 2, 5, 2});
  const auto choice = choose(logits, sampling, TokenHistory(sampling, {}, {}));
  REQUIRE(choice);
  std::vector<TokenId> order;
  double sum = 0;
  for (const TokenLogprob& entry : choice->logprobs->top) {
    order.push_back(entry.token);
    sum += std::exp(entry.logprob);
  }
  CHECK(order == std::vector<TokenId>{1, 3, 0, 2, 4});
  CHECK(sum == doctest::Approx(1.0));
  CHECK(choice->logprobs->top[0].logprob == doctest::Approx(std::log(5.0 / 16)));
  CHECK(choice->logprobs->chosen.logprob == doctest::Approx(std::log(5.0 / 16)));
}

TEST_CASE("no logprobs are made where none are wanted, and the chosen one alone at 0") {
  Sampling sampling;
  std::vector<float> logits{1, 2};
  CHECK_FALSE(choose(logits, sampling, TokenHistory(sampling, {}, {}))->logprobs.has_value());
  sampling.logprobs = 0;
  logits = {1, 2};
  CHECK(choose(logits, sampling, TokenHistory(sampling, {}, {}))->logprobs->top.empty());
}

TEST_CASE("a stop token cannot come before min_tokens, stops after it, and never with ignore_eos") {
  Sampling sampling;
  sampling.temperature = 0;
  sampling.min_tokens = Tokens{2};
  sampling.stop_tokens = {1, 400};
  const std::vector<float> logits{1, 3, 2};
  const auto at = [&](std::size_t index) {
    std::vector<float> spent = logits;
    const std::vector<TokenId> generated(index, 0);
    return choose(spent, sampling, TokenHistory(sampling, {}, generated)).value();
  };
  CHECK(at(1).token == 2);
  CHECK_FALSE(at(1).stops);
  CHECK(at(2).token == 1);
  CHECK(at(2).stops);
  sampling.ignore_eos = true;
  CHECK(at(1).token == 1);
  CHECK_FALSE(at(1).stops);
  CHECK_FALSE(at(2).stops);
}

TEST_CASE("logits that are no numbers are an error that names the token") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Sampling sampling;
  const TokenHistory history(sampling, {}, {});
  std::vector<float> not_a_number{1, std::nanf(""), 2};
  const auto nan = choose(not_a_number, sampling, history);
  REQUIRE_FALSE(nan);
  CHECK(nan.error().code == ErrorCode::internal);
  CHECK(nan.error().context.find("token 1") != std::string::npos);
  std::vector<float> overflow{1, 2, kInfinity};
  CHECK_FALSE(choose(overflow, sampling, history));
  std::vector<float> nothing{-kInfinity, -kInfinity};
  CHECK_FALSE(choose(nothing, sampling, history));
  std::vector<float> one{-kInfinity, 3};
  CHECK(choose(one, sampling, history)->token == 1);
}

TEST_CASE("a request whose min_tokens forbids the whole vocabulary fails, not the process") {
  Sampling sampling;
  sampling.min_tokens = Tokens{1};
  sampling.stop_tokens = {0, 1};
  std::vector<float> logits{1, 2};
  const auto refused = choose(logits, sampling, TokenHistory(sampling, {}, {}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::invalid_input);
}

TEST_CASE("parameters without a meaning are refused by name") {
  const auto field_of = [](auto change) -> std::string {
    Sampling sampling;
    change(sampling);
    const auto checked = check_sampling(sampling, 100);
    return checked ? "" : checked.error().context.substr(10, checked.error().context.find('=') - 10);
  };
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  CHECK(field_of([](Sampling&) {}) == "");
  CHECK(field_of([](Sampling& s) { s.temperature = -0.1; }) == "temperature");
  CHECK(field_of([](Sampling& s) { s.temperature = kNaN; }) == "temperature");
  CHECK(field_of([](Sampling& s) { s.top_k = -1; }) == "top_k");
  CHECK(field_of([](Sampling& s) { s.top_p = 0; }) == "top_p");
  CHECK(field_of([](Sampling& s) { s.top_p = 1.01; }) == "top_p");
  CHECK(field_of([](Sampling& s) { s.min_p = 1.01; }) == "min_p");
  CHECK(field_of([](Sampling& s) { s.repetition_penalty = 0; }) == "repetition_penalty");
  CHECK(field_of([](Sampling& s) { s.presence_penalty = kNaN; }) == "presence_penalty");
  CHECK(field_of([](Sampling& s) { s.frequency_penalty = 1e300; }) == "frequency_penalty");
  CHECK(field_of([](Sampling& s) { s.max_tokens = Tokens{0}; }) == "max_tokens");
  CHECK(field_of([](Sampling& s) { s.logit_bias = {{5, kNaN}}; }) == "logit_bias");
  CHECK(field_of([](Sampling& s) { s.logit_bias = {{100, 1.0}}; }) == "logit_bias token");
  CHECK(field_of([](Sampling& s) { s.logit_bias = {{99, 1.0}}; }) == "");
}
