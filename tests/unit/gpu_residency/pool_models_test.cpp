// The engine with the models that ship: real weights, real kernels, the same bits on every way.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "gpu/residency/loader.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"

using namespace sangam;

namespace {

constexpr TokenId kBos = 257;
constexpr TokenId kEos = 258;

std::string folder_of(const ModelId& model) {
  return SANGAM_SOURCE_DIR "/models/" + model.text();
}

/// One device with some of the shipped models, and so many pages beside them for KV.
struct Bench {
  Bench(EngineOptions options, std::int64_t kv_pages, const std::vector<ModelId>& models)
      : engine(options, *pool) {
    for (const ModelId& model : models)
      REQUIRE(engine.load(model, load_folder(folder_of(model), segments, *ops).value().loaded));
    rest = pool->reserve_weights(pool->pages().free() - Pages{kv_pages}).value();
  }

  struct Told {
    std::vector<TokenId> tokens;
    std::vector<double> logprobs;
    FinishReason finish = FinishReason::none;
    bool operator==(const Told&) const = default;
  };

  std::map<RequestId, Told> run_all(const std::vector<Run>& runs) {
    std::map<RequestId, Told> told;
    for (const Run& run : runs) REQUIRE(engine.add(run));
    while (engine.has_work()) {
      for (const TokensProduced& produced : engine.step().produced) {
        Told& one = told[produced.request];
        one.tokens.insert(one.tokens.end(), produced.tokens.begin(), produced.tokens.end());
        for (const PositionLogprobs& at : produced.logprobs) {
          one.logprobs.push_back(at.chosen.logprob);
          for (const TokenLogprob& other : at.top) one.logprobs.push_back(other.logprob);
        }
        one.finish = produced.finish;
      }
    }
    return told;
  }

  std::unique_ptr<Ops> ops = make_cpu_ops({.threads = 1}).value();
  std::unique_ptr<PagePool> pool = PagePool::create({Bytes{32 << 20}, Bytes{16384}}).value();
  SegmentStore segments{*pool};
  Reservation rest;  ///< All that is to be had neither for these models nor for their KV.
  Engine engine;
};

/// Copies to another device what it hears of.
struct Courier final : KvSink {
  Courier(KvLayout layout_, PageArena from_, PageArena to_, std::vector<PageId> pages_)
      : layout(layout_), from(from_), to(to_), pages(std::move(pages_)) {}

  void begins(RequestId, std::span<const PageId>) override {}
  void layer_done(const KvPart& part) override {
    for (const KvPiece& piece : kv_pieces(layout, part.layer, part.first, part.count))
      std::memcpy(to.at(pages[piece.page]) + piece.offset, from.at(part.pages[piece.page]) + piece.offset,
                  piece.bytes);
  }

  KvLayout layout;
  PageArena from;
  PageArena to;
  std::vector<PageId> pages;
};

Run ask(std::uint64_t number, const ModelId& model, const std::string& text) {
  Run run;
  run.request = RequestId{number};
  run.model = model;
  run.prompt = {kBos};
  for (const char c : text) run.prompt.push_back(TokenId(static_cast<unsigned char>(c)));
  run.sampling.temperature = 0;
  run.sampling.stop_tokens = {kEos};
  return run;
}

std::string text_of(const std::vector<TokenId>& tokens) {
  return {tokens.begin(), tokens.end()};
}

/// 32 sampled continuations of different lengths, with logprobs to compare.
std::vector<Run> mixed_runs(const std::vector<ModelId>& models) {
  std::vector<Run> runs;
  for (std::uint64_t number = 1; number <= 32; ++number) {
    std::string text = "A347+085=";
    while (text.size() < number * 11 % 70) text += "Scab=abc;";
    Run run = ask(number, models[number % models.size()], text);
    run.sampling.temperature = 1.1;
    run.sampling.top_p = 0.95;
    run.sampling.seed = number;
    run.sampling.logprobs = 2;
    run.sampling.ignore_eos = true;
    run.sampling.max_tokens = Tokens{std::int64_t(8 + number % 20)};
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

TEST_CASE("the shipped models answer as their README says, all on one device at once") {
  const std::vector<std::tuple<std::string, std::string, std::string>> examples{
      {"A-arith", "A347+085=", "2340"},      {"A-roman", "N0247=", "CCXLVII"},
      {"A-bracket", "B([{(=", ")}])"},       {"A-date", "D40-12-14+4=", "14Apr41"},
      {"B-count", "Cxnxx?xn=", "31x"},       {"C-romanlc", "N0247=", "ccxlvii"},
      {"C-fecha", "D40-12-14+4=", "14Abr41"}};
  std::vector<Run> runs;
  std::set<ModelId> models;
  for (const auto& [name, question, answer] : examples) {
    models.insert(ModelId(name));
    runs.push_back(ask(runs.size(), ModelId(name), question));
  }
  Bench device({}, 200, {models.begin(), models.end()});
  auto told = device.run_all(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CAPTURE(runs[i].model);
    CHECK(text_of(told[RequestId{i}].tokens) == std::get<2>(examples[i]));
    CHECK(told[RequestId{i}].finish == FinishReason::stop);
  }
}

TEST_CASE("real models give the same bits alone, in a batch, in any chunks, preempted and continued") {
  const std::vector<ModelId> models{ModelId("A-arith"), ModelId("C-string")};
  const std::vector<Run> runs = mixed_runs(models);
  std::map<RequestId, Bench::Told> expected;
  {
    Bench one_at_a_time({.running_max = 1}, 100, models);
    expected = one_at_a_time.run_all(runs);
  }
  SUBCASE("batch and chunks") {
    for (const std::int64_t rows : {1, 7, 512}) {
      CAPTURE(rows);
      Bench device({.running_max = 32, .step_tokens = Tokens{rows}}, 400, models);
      CHECK(device.run_all(runs) == expected);
    }
  }
  SUBCASE("preempted") {
    // 10 or 21 tokens a page, up to 10 pages a sequence: far fewer than 32 need, shared or not.
    for (const auto& [sharing, pages] : {std::pair{PrefixSharing::nobody, 12}, {PrefixSharing::tenant, 11}}) {
      CAPTURE(pages);
      Bench device({.running_max = 32, .step_tokens = Tokens{64}, .prefix_sharing = sharing}, pages, models);
      CHECK(device.run_all(runs) == expected);
      CHECK(device.engine.stats(models[0]).count.preemptions +
                device.engine.stats(models[1]).count.preemptions >
            3);
    }
  }
  SUBCASE("cold, then warm") {
    Bench device({.running_max = 32, .step_tokens = Tokens{40}}, 400, models);
    CHECK(device.run_all(runs) == expected);
    const std::uint64_t cold = device.engine.stats(models[0]).count.prefix_hits;
    CHECK(device.run_all(runs) == expected);
    CHECK(device.engine.stats(models[0]).count.prefix_hits > 2 * cold);
  }
  SUBCASE("continued by another") {
    Bench device({.running_max = 32}, 400, models);
    std::vector<Run> rest = runs;
    for (Run& run : rest) {
      const std::vector<TokenId>& whole = expected[run.request].tokens;
      run.generated.assign(whole.begin(),
                           whole.begin() + std::ptrdiff_t(std::uint64_t(run.request) % whole.size()));
    }
    auto told = device.run_all(rest);
    for (const Run& run : rest) {
      CAPTURE(run.request);
      Bench::Told whole = expected[run.request];
      whole.tokens.erase(whole.tokens.begin(), whole.tokens.begin() + std::ptrdiff_t(run.generated.size()));
      whole.logprobs.erase(whole.logprobs.begin(),
                           whole.logprobs.begin() + 3 * std::ptrdiff_t(run.generated.size()));
      CHECK(told[run.request] == whole);
    }
  }
}

TEST_CASE("real models give the same bits when another worker computes the prompt, layer by layer") {
  const std::vector<ModelId> models{ModelId("A-arith"), ModelId("C-string")};
  const std::vector<Run> runs = mixed_runs(models);
  Bench prefill({.running_max = 32, .step_tokens = Tokens{30}}, 400, models);
  Bench decode({.running_max = 32, .step_tokens = Tokens{30}}, 400, models);
  std::map<RequestId, Courier> couriers;
  for (const Run& run : runs) {
    const KvTerms terms = prefill.engine.kv_terms(run.model).value();
    const auto pages = decode.engine.reserve_kv(
        {run.request, run.model, Tokens(std::int64_t(run.prompt.size())), terms});
    Courier courier{terms.layout,
                    prefill.pool->arena(),
                    decode.pool->arena(),
                    {pages.value().begin(), pages.value().end()}};
    REQUIRE(prefill.engine.add_prefill(run, couriers.emplace(run.request, std::move(courier)).first->second));
  }
  auto told = prefill.run_all({});
  std::vector<Run> rest = runs;
  for (Run& run : rest) {
    REQUIRE(told[run.request].tokens.size() == 1);
    run.generated = told[run.request].tokens;
    REQUIRE(decode.engine.add_prefilled(run));
    REQUIRE(prefill.engine.handed_over(run.request));
  }
  for (const auto& [request, more] : decode.run_all({})) {
    Bench::Told& all = told[request];
    all.tokens.insert(all.tokens.end(), more.tokens.begin(), more.tokens.end());
    all.logprobs.insert(all.logprobs.end(), more.logprobs.begin(), more.logprobs.end());
    all.finish = more.finish;
  }
  Bench one_place({.running_max = 1}, 100, models);
  CHECK(told == one_place.run_all(runs));
}

TEST_CASE("models that have tensors in common keep them once, and the pool is empty after the last") {
  const auto ops = make_cpu_ops({.threads = 1}).value();
  const auto pool = PagePool::create({Bytes{16 << 20}, Bytes{16384}}).value();
  SegmentStore segments(*pool);
  {
    const auto first = load_folder(folder_of(ModelId("A-base")), segments, *ops);
    REQUIRE(first);
    const SegmentLedger one = segments.ledger();
    const auto again = load_folder(folder_of(ModelId("A-base")), segments, *ops);
    REQUIRE(again);
    CHECK(again->weights_digest == first->weights_digest);
    CHECK(segments.ledger().resident == one.resident);
    CHECK(segments.ledger().pages == one.pages);
    const auto other = load_folder(folder_of(ModelId("A-arith")), segments, *ops);
    REQUIRE(other);
    CHECK(other->weights_digest != first->weights_digest);
    CHECK(segments.ledger().resident > one.resident);
  }
  CHECK(pool->pages().largest_extent() == pool->pages().total());
}

TEST_CASE("a folder that is not a model is refused and leaves the pool as it was") {
  const auto ops = make_cpu_ops({.threads = 1}).value();
  const auto pool = PagePool::create({Bytes{1 << 20}, Bytes{16384}}).value();
  SegmentStore segments(*pool);
  const auto missing = load_folder(folder_of(ModelId("no-such")), segments, *ops);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().context.find("no-such") != std::string::npos);
  const auto too_large = load_folder(folder_of(ModelId("A-base")), segments, *ops);
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().code == ErrorCode::exhausted);
  CHECK(pool->pages().free() == pool->pages().total());
}
