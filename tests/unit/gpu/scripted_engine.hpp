// An engine of scripted models on a small pool, and what each of its requests has said so far.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/gpu/scripted_model.hpp"

namespace sangam {

inline constexpr std::int64_t kPage = 4096;  // 256 tokens of a scripted model
inline const ModelId kModel("scripted");

/// An engine with scripted models, and what each request has said so far.
class ScriptedEngine {
 public:
  struct Told {
    std::vector<TokenId> tokens;
    std::vector<PositionLogprobs> logprobs;
    FinishReason finish = FinishReason::none;
    ErrorCode code = ErrorCode::none;
    std::string why;
    std::uint64_t first = 0;
    std::int64_t prefill_rows = 0;
    int prefills_done = 0;
    std::int64_t cached = 0;
  };

  explicit ScriptedEngine(EngineOptions options, std::int64_t pages = 64,
                          PrefixCache::Hash hash = strong_hash)
      : pool_(PagePool::create({Bytes{pages * kPage}, Bytes{kPage}}, {.poison = true}).value()),
        engine_(options, *pool_, std::move(hash)) {}

  static Digest strong_hash(std::span<const std::byte> bytes) { return digest_of(bytes); }

  /// Without a `kv_name` its pages are free as soon as its requests are gone.
  void load(const ModelId& name, ScriptedModel::Script script, const std::string& kv_name = {}) {
    REQUIRE(engine_.load(name, {{}, std::make_unique<ScriptedModel>(script, &steps_), kv_name}));
  }

  void step() {
    const StepReport report = engine_.step();
    for (const TokensProduced& produced : report.produced) {
      Told& told = told_[produced.request];
      REQUIRE(told.finish == FinishReason::none);
      if (told.tokens.empty()) told.first = produced.first;
      REQUIRE(produced.first == told.first + told.tokens.size());
      told.tokens.insert(told.tokens.end(), produced.tokens.begin(), produced.tokens.end());
      told.logprobs.insert(told.logprobs.end(), produced.logprobs.begin(), produced.logprobs.end());
      told.finish = produced.finish;
      told.cached = produced.cached.count();
      told.code = produced.code;
      told.why = produced.why;
    }
    for (const PrefillProgress& progress : report.prefills) {
      told_[progress.request].prefill_rows += progress.rows.count();
      told_[progress.request].prefills_done += progress.done ? 1 : 0;
    }
  }

  void run_dry() {
    for (int step_count = 0; engine_.has_work(); ++step_count) {
      REQUIRE(step_count < 20'000);
      step();
    }
  }

  Told& told(std::uint64_t request) { return told_[RequestId{request}]; }
  Engine& engine() { return engine_; }
  PagePool& pool() { return *pool_; }
  std::vector<ScriptedStep>& steps() { return steps_; }

 private:
  std::unique_ptr<PagePool> pool_;
  std::vector<ScriptedStep> steps_;
  Engine engine_;
  std::map<RequestId, Told> told_;
};

/// A request with its own prompt and its own way of sampling.
inline Run request(std::uint64_t number, std::int64_t prompt, std::int64_t output) {
  Run run;
  run.request = RequestId{number};
  run.model = kModel;
  for (std::int64_t i = 0; i < prompt; ++i)
    run.prompt.push_back(TokenId((number * 7 + std::uint64_t(i) * 3) % 50));
  run.sampling.max_tokens = Tokens{output};
  run.sampling.seed = number;
  run.sampling.temperature = double(number % 3) * 0.7;
  run.sampling.top_p = number % 2 == 0 ? 0.9 : 1.0;
  run.sampling.repetition_penalty = number % 5 == 0 ? 1.2 : 1.0;
  run.sampling.frequency_penalty = number % 7 == 0 ? 0.4 : 0.0;
  run.sampling.logprobs = number % 4 == 0 ? 3 : -1;
  return run;
}

/// What it says when it is alone.
inline ScriptedEngine::Told alone(Run run, ScriptedModel::Script script = {}) {
  ScriptedEngine bench({.running_max = 1});
  bench.load(run.model, script);
  const std::uint64_t number = std::uint64_t(run.request);
  REQUIRE(bench.engine().add(std::move(run)));
  bench.run_dry();
  return bench.told(number);
}

inline void check_equal(const ScriptedEngine::Told& a, const ScriptedEngine::Told& b) {
  CHECK(a.tokens == b.tokens);
  CHECK(a.finish == b.finish);
  REQUIRE(a.logprobs.size() == b.logprobs.size());
  for (std::size_t i = 0; i < a.logprobs.size(); ++i) {
    CHECK(a.logprobs[i].chosen.logprob == b.logprobs[i].chosen.logprob);
  }
}

}  // namespace sangam
