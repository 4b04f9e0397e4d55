// The logits of a sequence have the same bits however the engine arranges its steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "bench/engine/random_model.hpp"
#include "tests/unit/gpu_model/every_isa.hpp"
#include "tests/unit/gpu_model/paged_sequences.hpp"

namespace sangam::testing {
namespace {

ModelConfig small_model() {
  ModelConfig c;
  c.architecture = Architecture::qwen3;
  c.vocab_size = 301;
  c.hidden_size = 192;
  c.intermediate_size = 420;
  c.layers = 3;
  c.heads = 6;
  c.kv_heads = 2;
  c.head_dim = 32;
  c.context = 512;
  c.qkv_bias = c.output_bias = c.mlp_bias = c.qk_norm = true;
  return c;
}

std::vector<TokenId> prompt_of(std::size_t sequence, std::size_t length) {
  std::mt19937 generator(std::uint32_t(100 + sequence));
  std::vector<TokenId> tokens(length);
  for (TokenId& token : tokens) token = generator() % 301;
  return tokens;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TokenId greedy(const std::vector<float>& logits) {
  return TokenId(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// What a sequence gives when it has the model to itself: the logits of each of `turns` greedy tokens.
std::vector<std::vector<float>> alone(Model& model, const std::vector<TokenId>& prompt, int turns) {
  PagedSequences sequences(model, 16, 20);
  const std::size_t s = sequences.add();
  std::vector<std::vector<float>> rows{sequences.prefill(s, prompt, prompt.size())};
  while (int(rows.size()) < turns) rows.push_back(sequences.step({{s, {greedy(rows.back())}, true}}).front());
  return rows;
}

struct Subject {
  Subject(Ops& ops, ModelConfig config)
      : weights(std::move(config), 7),
        model(Model::create(
                  weights.config(), [this](std::string_view name) { return weights.tensor(name); }, ops)
                  .value()) {}
  RandomModel weights;
  std::unique_ptr<Model> model;
};

TEST_CASE("a prompt gives the same bits in chunks of any size, on any pages, with any number of threads") {
  const std::vector<TokenId> prompt = prompt_of(0, 100);
  for (const std::int64_t window : {0, 40}) {
    ModelConfig config = small_model();
    config.sliding_window = window;
    for_every_isa(1, [&](Ops& ops) {
      const std::vector<float> whole = alone(*Subject(ops, config).model, prompt, 1).front();
      for (int threads = 1; threads <= 3; ++threads) {
        auto other_ops = make_cpu_ops({isa_named(ops.name()).value(), threads}).value();
        Subject other(*other_ops, config);
        for (const std::size_t chunk : {1, 3, 7, 100}) {
          PagedSequences sequences(*other.model, std::int64_t(chunk) + 4, 30, std::uint32_t(threads));
          CHECK(same_bits(sequences.prefill(sequences.add(), prompt, chunk), whole));
        }
      }
    });
  }
}

TEST_CASE("32 sequences that decode together give the bits that each gives alone") {
  for_every_isa(2, [](Ops& ops) {
    Subject subject(ops, small_model());
    PagedSequences together(*subject.model, 16, 200);
    std::vector<std::vector<std::vector<float>>> expected;
    std::vector<std::vector<float>> latest;
    for (std::size_t s = 0; s < 32; ++s) {
      const std::vector<TokenId> prompt = prompt_of(s, 5 + 2 * s);
      expected.push_back(alone(*subject.model, prompt, 4));
      latest.push_back(together.prefill(together.add(), prompt, 1000));
    }
    for (std::size_t turn = 0; turn < 4; ++turn) {
      std::vector<PagedSequences::Turn> turns;
      for (std::size_t s = 0; s < 32; ++s) {
        CHECK(same_bits(latest[s], expected[s][turn]));
        turns.push_back({s, {greedy(latest[s])}, true});
      }
      if (turn < 3) latest = together.step(turns);
    }
  });
}

TEST_CASE("prefill chunks and decodes that share steps give the bits that each gives alone") {
  for_every_isa(3, [](Ops& ops) {
    Subject subject(ops, small_model());
    const std::vector<TokenId> long_prompt = prompt_of(1, 90);
    const auto expected_decode = alone(*subject.model, prompt_of(2, 20), 7);
    const auto expected_prefill = alone(*subject.model, long_prompt, 1).front();
    PagedSequences mixed(*subject.model, 16, 40);
    const std::size_t decoding = mixed.add();
    const std::size_t prefilling = mixed.add();
    std::vector<float> latest = mixed.prefill(decoding, prompt_of(2, 20), 1000);
    for (std::size_t turn = 1; turn < 7; ++turn) {
      const auto chunk = std::span(long_prompt).subspan((turn - 1) * 15, 15);
      const auto rows = mixed.step(
          {{prefilling, {chunk.begin(), chunk.end()}, turn == 6}, {decoding, {greedy(latest)}, true}});
      latest = rows.back();
      CHECK(same_bits(latest, expected_decode[turn]));
      if (turn == 6) CHECK(same_bits(rows.front(), expected_prefill));
    }
  });
}

TEST_CASE("a step that wants no logits writes keys and values only") {
  auto ops = make_cpu_ops({Isa::best, 2}).value();
  Subject subject(*ops, small_model());
  PagedSequences sequences(*subject.model, 16, 10);
  CHECK(sequences.step({{sequences.add(), prompt_of(0, 20), false}}).empty());
}

}  // namespace
}  // namespace sangam::testing
