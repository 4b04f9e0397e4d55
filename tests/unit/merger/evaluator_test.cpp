// Scores without decoding against the engine that decodes, and against the scores that the pool ships with.
#include "actors/merger/evaluation/evaluator.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "actors/merger/evaluation/input_statistics.hpp"
#include "gpu/residency/loader.hpp"
#include "tests/unit/merger/pool_fixture.hpp"
#include "tests/unit/merger/random_weights.hpp"

namespace sangam::merging {
namespace {

/// What the engine says to each prompt, decoded greedily until the end token or one token beyond the answer.
std::vector<std::vector<TokenId>> decoded(const std::string& model, const std::vector<AnswerKey>& keys) {
  const auto ops = make_cpu_ops({.threads = 1}).value();
  const auto pool = PagePool::create({Bytes{16 << 20}, Bytes{16384}}).value();
  SegmentStore segments{*pool};
  Engine engine({}, *pool);
  const ModelId name(model);
  REQUIRE(engine.load(name, load_folder(SANGAM_SOURCE_DIR "/models/" + model, segments, *ops).value().loaded));
  std::vector<std::vector<TokenId>> out(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Run run;
    run.request = RequestId(i);
    run.model = name;
    run.prompt = keys[i].prompt;
    run.sampling.temperature = 0.0;
    run.sampling.max_tokens = Tokens(std::int64_t(keys[i].answer.size()) + 1);
    run.sampling.stop_tokens = {kEos};
    REQUIRE(engine.add(run));
  }
  while (engine.has_work()) {
    for (const TokensProduced& produced : engine.step().produced) {
      auto& tokens = out[std::size_t(produced.request)];
      tokens.insert(tokens.end(), produced.tokens.begin(), produced.tokens.end());
    }
  }
  return out;
}

/// Keeps every input of every linear layer.
class Recorder final : public Ops {
 public:
  explicit Recorder(Ops& ops) : ops_(ops) {}
  std::vector<DenseMatrix> seen;  // In the order of the calls of one step.

  std::string_view name() const override { return ops_.name(); }
  void embed(const Linear& table, std::span<const TokenId> tokens, float* out) override { ops_.embed(table, tokens, out); }
  void rms_norm(const Rows& x, const float* w, float e, float* out) override { ops_.rms_norm(x, w, e, out); }
  void linear(const Rows& x, std::span<const Projection> projections) override {
    seen.push_back({x.count, x.width, {x.values, x.values + x.count * x.width}});
    ops_.linear(x, projections);
  }
  void rotate(float* h, std::int64_t r, std::int64_t n, const Rotation& by) override { ops_.rotate(h, r, n, by); }
  void store_kv(const KvLayer& kv, const float* k, const float* v) override { ops_.store_kv(kv, k, v); }
  void attention(const KvLayer& kv, const AttentionShape& s, const float* q, float* out) override { ops_.attention(kv, s, q, out); }
  void swiglu(float* g, const float* u, std::int64_t n) override { ops_.swiglu(g, u, n); }

 private:
  Ops& ops_;
};

}  // namespace

TEST_CASE("an answer is right exactly where greedy decoding gives it") {
  const std::pair<const char*, const char*> cases[] = {{"A-arith", "arith"}, {"C-string", "string"}, {"B-count", "count"}, {"A-base", "bracket"}};
  for (const auto& [name, task] : cases) {
    const auto keys = shipped_items(task, 0, 150);
    ShippedModel shipped(name);
    const auto scores = Evaluator(*shipped.model, 300).score(keys);
    const auto said = decoded(name, keys);
    REQUIRE(scores.size() == keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      CAPTURE(name);
      CAPTURE(i);
      CHECK(scores[i].right == (said[i] == keys[i].answer));  // The engine does not tell the end token.
    }
  }
}

TEST_CASE("the pool's models score what they ship with") {
  // Exact match on items 200 to 599; see models/README.md.
  const std::tuple<const char*, const char*, double> cases[] = {
      {"A-arith", "arith", 100.0},   {"A-string", "string", 86.0},   {"A-roman", "roman", 100.0},       {"A-bracket", "bracket", 99.5},
      {"A-date", "date", 100.0},     {"B-date", "date", 100.0},      {"B-count", "count", 98.0},        {"C-string", "string", 86.25},
      {"C-bracket", "bracket", 98.25}, {"C-romanlc", "romanlc", 99.0}, {"C-fecha", "fecha", 99.75}, {"C-sortdesc", "sortdesc", 79.25}};
  for (const auto& [name, task, score] : cases) {
    CAPTURE(name);
    ShippedModel shipped(name);
    const auto scores = Evaluator(*shipped.model).score(shipped_items(task, 200, 600));
    const auto right = std::count_if(scores.begin(), scores.end(), [](const AnswerScore& s) { return s.right; });
    CHECK(std::abs(100.0 * double(right) / double(scores.size()) - score) < 0.26);  // An item may lie on a tie.
  }
}

TEST_CASE("scores do not depend on how items are batched") {
  const auto keys = shipped_items("date", 0, 60);
  ShippedModel shipped("A-date");
  const auto all = Evaluator(*shipped.model).score(keys);
  const auto one_by_one = Evaluator(*shipped.model, 1).score(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(all[i].margin == one_by_one[i].margin);
}

TEST_CASE("danger is large for wrong answers and small for safe ones") {
  const AnswerScore scores[] = {{true, 0.0f}, {false, -20.0f}, {true, 40.0f}};
  CHECK(danger_of(scores) == doctest::Approx((std::log(2.0) + 20.0) / 3.0).epsilon(1e-9));
  CHECK(danger_of({}) == 0.0);
}

TEST_CASE("statistics are the sums over all inputs that a slot has seen") {
  const auto keys = shipped_items("count", 0, 7);
  const auto ops = make_cpu_ops({.threads = 1}).value();
  Recorder recorder(*ops);
  ShippedModel recorded("B-count", &recorder);
  (void)Evaluator(*recorded.model).score(keys);  // One step.
  InputStatistics statistics(*ops, recorded.opened.config.layers);
  ShippedModel counted("B-count", &statistics);
  (void)Evaluator(*counted.model).score(keys);
  REQUIRE(recorder.seen.size() == 5 * 4 + 1);
  const auto same = [](const Gram& gram, const DenseMatrix& inputs) {
    const Gram expected = gram_of(inputs);
    REQUIRE(gram.columns == expected.columns);
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      REQUIRE(std::abs(gram.values[i] - expected.values[i]) <= 1e-9 * std::abs(expected.values[0]) + 1e-9);
    }
  };
  same(statistics.gram(0, InputSite::attention), recorder.seen[0]);
  same(statistics.gram(2, InputSite::output), recorder.seen[9]);
  same(statistics.gram(3, InputSite::mlp), recorder.seen[14]);
  same(statistics.gram(4, InputSite::down), recorder.seen[19]);
  same(statistics.head(), recorder.seen[20]);
}

}  // namespace sangam::merging
