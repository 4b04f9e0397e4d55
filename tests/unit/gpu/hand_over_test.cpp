// One engine computes the prompt, another goes on: the same tokens, and no page is left behind at any point.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <random>

#include "tests/unit/gpu/scripted_engine.hpp"

using namespace sangam;

namespace {

const ScriptedModel::Script kDeep{.bytes_per_token = 64, .layers = 4, .context = 400};  // 64 tokens a page

/// Copies between two engines' pools as soon as a layer is told.
class Courier final : public KvSink {
 public:
  Courier(ScriptedEngine& from, ScriptedEngine& to) : from_(from), to_(to) {}

  void begins(RequestId request, std::span<const PageId> pages) override {
    begun = request;
    source.assign(pages.begin(), pages.end());
  }
  void layer_done(const KvPart& part) override {
    CHECK(begun == part.request);
    CHECK(std::equal(source.begin(), source.end(), part.pages.begin(), part.pages.end()));
    parts.push_back(part);
    const KvTerms terms = from_.engine().kv_terms(kModel).value();
    for (const KvPiece& piece : kv_pieces(terms.layout, part.layer, part.first, part.count)) {
      std::memcpy(to_.pool().address_of(destination.at(piece.page)) + piece.offset,
                  from_.pool().address_of(part.pages[piece.page]) + piece.offset, piece.bytes);
      bytes += piece.bytes;
    }
  }

  std::vector<PageId> destination;
  std::vector<PageId> source;
  RequestId begun{};
  std::vector<KvPart> parts;  ///< `pages` are gone.
  std::size_t bytes = 0;

 private:
  ScriptedEngine& from_;
  ScriptedEngine& to_;
};

/// A prefill engine and a decode engine.
struct Pair {
  explicit Pair(EngineOptions options = {}, std::int64_t pages = 64, const std::string& kv_name = "weights")
      : prefill(options, pages), decode(options, pages) {
    prefill.load(kModel, kDeep, kv_name);
    decode.load(kModel, kDeep, kv_name);
  }

  [[nodiscard]] KvWish wish(const Run& run) {
    const auto tokens = std::int64_t(run.prompt.size() + run.generated.size());
    return {run.request, kModel, Tokens(tokens), prefill.engine().kv_terms(kModel).value()};
  }

  /// Until the prompt has been computed and told.
  void begin(const Run& run) {
    const auto pages = decode.engine().reserve_kv(wish(run)).value();
    courier.destination.assign(pages.begin(), pages.end());
    REQUIRE(prefill.engine().add_prefill(run, courier));
    prefill.run_dry();
  }

  /// With what the first engine has said.
  void go_on(Run run) {
    const std::vector<TokenId>& said = prefill.told(std::uint64_t(run.request)).tokens;
    run.generated.insert(run.generated.end(), said.begin(), said.end());
    REQUIRE(decode.engine().add_prefilled(run));
  }

  void check_empty() {
    for (ScriptedEngine* bench : {&prefill, &decode}) {
      CHECK_FALSE(bench->engine().has_work());
      CHECK(bench->engine().stats(kModel).handing_over == Pages{0});
      CHECK(bench->pool().available() == bench->pool().pages().total());
      CHECK(bench->pool().ledger().models.at(kModel).kv == Pages{0});
    }
  }

  /// What both have said together.
  ScriptedEngine::Told told(std::uint64_t request) {
    ScriptedEngine::Told all = prefill.told(request);
    const ScriptedEngine::Told& rest = decode.told(request);
    all.tokens.insert(all.tokens.end(), rest.tokens.begin(), rest.tokens.end());
    all.logprobs.insert(all.logprobs.end(), rest.logprobs.begin(), rest.logprobs.end());
    all.finish = rest.finish;
    return all;
  }

  ScriptedEngine prefill;
  ScriptedEngine decode;
  Courier courier{prefill, decode};
};

}  // namespace

TEST_CASE("a request that is handed over says what it would have said in one place") {
  for (const std::int64_t rows : {7, 64, 512}) {
    for (const std::uint64_t number : {4u, 5u, 7u, 10u}) {
      CAPTURE(rows);
      CAPTURE(number);
      Pair pair({.step_tokens = Tokens{rows}});
      const Run run = request(number, 200, 30);
      pair.begin(run);
      CHECK(pair.prefill.told(number).tokens.size() == 1);
      CHECK(pair.prefill.told(number).finish == FinishReason::none);
      pair.go_on(run);
      CHECK(pair.prefill.engine().handed_over(run.request));
      pair.decode.run_dry();
      CHECK(pair.decode.told(number).first == 1);
      CHECK(pair.decode.told(number).prefill_rows == 0);
      check_equal(pair.told(number), alone(run, kDeep));
      pair.check_empty();
    }
  }
}

TEST_CASE("every layer is told once for every position, in order, while the prompt is computed") {
  Pair pair({.step_tokens = Tokens{70}});
  pair.begin(request(1, 200, 9));
  REQUIRE(pair.courier.parts.size() == 12);  // 3 steps of 4 layers
  std::map<std::int64_t, std::int64_t> told;
  for (std::size_t i = 0; i < 12; ++i) {
    const KvPart& part = pair.courier.parts[i];
    CHECK(part.layer == std::int64_t(i % 4));
    CHECK(part.first == told[part.layer]);
    CHECK(part.count == (i < 8 ? 70 : 60));
    told[part.layer] += part.count;
  }
  CHECK(pair.courier.bytes == 200 * kDeep.bytes_per_token);
}

TEST_CASE("what the prefix cache had is handed over with the first rows") {
  Pair pair;
  const Run run = request(1, 200, 20);
  Run before = run;
  before.request = RequestId{9};
  REQUIRE(pair.prefill.engine().add(before));
  pair.prefill.run_dry();
  pair.begin(run);
  CHECK(pair.prefill.told(1).cached == 192);
  REQUIRE(pair.courier.parts.size() == 4);
  CHECK(pair.courier.parts[0].first == 0);
  CHECK(pair.courier.parts[0].count == 200);
  pair.go_on(run);
  pair.decode.run_dry();
  check_equal(pair.told(1), alone(run, kDeep));
  CHECK(pair.prefill.engine().handed_over(run.request));
  pair.check_empty();
}

TEST_CASE("what came from another engine is in the prefix cache of both afterwards") {
  Pair pair;
  const Run run = request(1, 200, 2);
  pair.begin(run);
  pair.go_on(run);
  pair.decode.run_dry();
  CHECK(pair.prefill.engine().handed_over(run.request));
  for (ScriptedEngine* bench : {&pair.prefill, &pair.decode}) {
    Run again = run;
    again.request = RequestId{2};
    REQUIRE(bench->engine().add(again));
    bench->run_dry();
    CHECK(bench->told(2).cached == 192);
    check_equal(bench->told(2), alone(again, kDeep));
  }
}

TEST_CASE("equal prompts that come from another engine end on the same pages") {
  Pair pair;
  for (const std::uint64_t number : {1u, 2u}) {
    Run run = request(1, 200, 30);
    run.request = RequestId{number};
    pair.begin(run);
    pair.go_on(run);
    CHECK(pair.prefill.engine().handed_over(run.request));
  }
  pair.decode.step();
  CHECK(pair.decode.engine().stats(kModel).count.running == 2);
  CHECK(pair.decode.engine().stats(kModel).count.pages == Pages{5});  // 3 whole ones, and one each
  pair.decode.run_dry();
  for (const std::uint64_t number : {1u, 2u}) {
    Run run = request(1, 200, 30);
    run.request = RequestId{number};
    check_equal(pair.told(number), alone(run, kDeep));
  }
  pair.check_empty();
}

TEST_CASE("the pages of a prompt stay as they are until they are handed over, whoever wants them") {
  Pair pair({.running_max = 4, .step_tokens = Tokens{10}}, 8);
  Run slow = request(1, 200, 20);  // 4 pages
  slow.service_class = ServiceClass::best_effort;
  const auto pages = pair.decode.engine().reserve_kv(pair.wish(slow)).value();
  pair.courier.destination.assign(pages.begin(), pages.end());
  REQUIRE(pair.prefill.engine().add_prefill(slow, pair.courier));
  pair.prefill.step();
  std::int64_t prompt = 0;
  SUBCASE("to grow: 4 pages, then 5, while the other prompt is half done") {
    prompt = 250;
  }
  SUBCASE("to get in: 5 pages") {
    prompt = 310;
  }
  Run urgent = request(2, prompt, 60);
  urgent.service_class = ServiceClass::deadline;
  REQUIRE(pair.prefill.engine().add(urgent));
  pair.prefill.run_dry();
  CHECK(pair.prefill.told(2).tokens.size() < 60);  // it waits, and the engine does not spin
  CHECK(pair.prefill.engine().stats(kModel).count.waiting == 1);
  CHECK(pair.prefill.engine().stats(kModel).handing_over == Pages{4});
  CHECK(pair.prefill.engine().handed_over(slow.request));
  pair.prefill.run_dry();
  check_equal(pair.prefill.told(2), alone(urgent, kDeep));
  CHECK(pair.courier.bytes == 200 * kDeep.bytes_per_token);
  pair.go_on(slow);
  pair.decode.run_dry();
  check_equal(pair.told(1), alone(slow, kDeep));
  pair.check_empty();
}

TEST_CASE("cancelled at any point, nothing is left on either side, and others are as before") {
  // The points: 0 reserved, 1 added, 2 in the middle of the prompt, 3 computed, 4 handed over, 5 runs
  // elsewhere.
  for (int point = 0; point <= 5; ++point) {
    CAPTURE(point);
    Pair pair({.step_tokens = Tokens{50}});
    const Run other = request(2, 90, 40);
    for (ScriptedEngine* bench : {&pair.prefill, &pair.decode}) {
      REQUIRE(bench->engine().add(other));
      bench->step();
    }
    const Run run = request(1, 200, 20);
    const auto pages = pair.decode.engine().reserve_kv(pair.wish(run)).value();
    pair.courier.destination.assign(pages.begin(), pages.end());
    if (point >= 1) REQUIRE(pair.prefill.engine().add_prefill(run, pair.courier));
    for (int steps = 0; steps < (point == 2 ? 2 : point >= 3 ? 10 : 0); ++steps) pair.prefill.step();
    if (point >= 4) CHECK(pair.prefill.engine().handed_over(run.request));
    if (point >= 5) {
      pair.go_on(run);
      pair.decode.step();
    }
    CHECK(pair.prefill.engine().cancel(run.request) == (point >= 1 && point <= 3));
    CHECK(pair.decode.engine().cancel(run.request));
    CHECK_FALSE(pair.decode.engine().cancel(run.request));
    CHECK_FALSE(pair.prefill.engine().handed_over(run.request));
    for (ScriptedEngine* bench : {&pair.prefill, &pair.decode}) {
      bench->run_dry();
      check_equal(bench->told(2), alone(other, kDeep));
    }
    pair.check_empty();
  }
}

TEST_CASE("a prompt whose first token ends it keeps its pages until it is let go, failed or not") {
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    ScriptedModel::Script script = kDeep;
    if (fails) script.not_a_number_at = 100;
    ScriptedEngine prefill({});
    prefill.load(kModel, script, "weights");
    ScriptedEngine sink_side({});
    Courier courier(prefill, sink_side);
    courier.destination = {PageId{0}, PageId{1}};
    REQUIRE(prefill.engine().add_prefill(request(1, 100, 1), courier));
    prefill.run_dry();
    CHECK(prefill.told(1).finish == (fails ? FinishReason::failed : FinishReason::length));
    CHECK(prefill.engine().stats(kModel).handing_over == Pages{2});
    CHECK(prefill.engine().unload(kModel).error().code == ErrorCode::unavailable);
    CHECK(prefill.engine().handed_over(RequestId{1}));
    CHECK(prefill.engine().stats(kModel).kept == Pages{fails ? 0 : 1});
    CHECK(prefill.engine().unload(kModel));
  }
}

TEST_CASE("a reservation is all or nothing, and goes back when it is cancelled") {
  Pair pair({.running_max = 8}, 8);
  Engine& decode = pair.decode.engine();
  const Run run = request(1, 300, 20);  // 5 pages
  CHECK(decode.reserve_kv(pair.wish(run)).value().size() == 5);
  CHECK(pair.decode.pool().available() == Pages{3});

  const auto refused = decode.reserve_kv(pair.wish(request(2, 200, 9)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::exhausted);
  CHECK(refused.error().context.find("needed=4") != std::string::npos);
  CHECK(refused.error().context.find("available=3") != std::string::npos);
  CHECK(pair.decode.pool().available() == Pages{3});

  CHECK(decode.reserve_kv(pair.wish(run)).error().code == ErrorCode::invalid_input);  // it is reserved already
  CHECK(decode.cancel(run.request));
  CHECK(pair.decode.pool().available() == Pages{8});
  CHECK(decode.add_prefilled(run).error().code == ErrorCode::not_found);
  CHECK(decode.reserve_kv(pair.wish(request(2, 200, 9))));
}

TEST_CASE("a reservation has a place and a page to grow into beside those who run") {
  Pair pair({.running_max = 2}, 8);
  Engine& decode = pair.decode.engine();
  REQUIRE(decode.add(request(1, 100, 200)));  // 2 pages, later 5
  pair.decode.step();
  CHECK(decode.reserve_kv(pair.wish(request(2, 380, 9))).error().code ==
        ErrorCode::exhausted);  // 6, but one to grow
  REQUIRE(decode.reserve_kv(pair.wish(request(3, 200, 9))));
  REQUIRE(decode.add(request(4, 10, 5)));
  pair.decode.step();
  CHECK(decode.stats(kModel).count.running == 1);  // the second place is promised
  CHECK(decode.reserve_kv(pair.wish(request(5, 10, 9))).error().code == ErrorCode::exhausted);
  CHECK(decode.cancel(RequestId{3}));
  pair.decode.run_dry();
  check_equal(pair.decode.told(4), alone(request(4, 10, 5), kDeep));
  CHECK(pair.decode.told(1).tokens.size() == 200);
}

TEST_CASE("what does not fit together is refused with the numbers of both sides") {
  Pair pair;
  Engine& decode = pair.decode.engine();
  const Run run = request(1, 200, 20);
  const auto refusal = [&](auto change) {
    KvWish wish = pair.wish(run);
    change(wish);
    const auto reserved = decode.reserve_kv(wish);
    REQUIRE_FALSE(reserved);
    CHECK(decode.stats(kModel).handing_over == Pages{0});
    return reserved.error();
  };
  const Error pages = refusal([](KvWish& wish) { wish.terms.page_bytes = 8192; });
  CHECK(pages.code == ErrorCode::invalid_input);
  CHECK(pages.context.find("page bytes=4096") != std::string::npos);
  CHECK(pages.context.find("page bytes=8192") != std::string::npos);
  CHECK(refusal([](KvWish& wish) { wish.terms.layout.tokens_per_page = 63; }).code ==
        ErrorCode::invalid_input);
  CHECK(refusal([](KvWish& wish) { wish.terms.layout.layers = 5; }).code == ErrorCode::invalid_input);
  CHECK(refusal([](KvWish& wish) { wish.terms.kv_name = "others"; }).code == ErrorCode::invalid_input);
  CHECK(refusal([](KvWish& wish) { wish.model = ModelId("nobody"); }).code == ErrorCode::not_found);
  CHECK(refusal([](KvWish& wish) { wish.tokens = Tokens{401}; }).code == ErrorCode::context_length);
  CHECK(refusal([](KvWish& wish) { wish.tokens = Tokens{0}; }).code == ErrorCode::context_length);
  Pair nameless({}, 64, "");
  CHECK(nameless.decode.engine().reserve_kv(nameless.wish(run)).error().code == ErrorCode::invalid_input);
}

TEST_CASE("a request for whose tokens too few pages are reserved is refused, and they stay reserved") {
  Pair pair;
  Engine& decode = pair.decode.engine();
  REQUIRE(decode.reserve_kv(pair.wish(request(1, 64, 20))));
  CHECK(decode.add_prefilled(request(1, 66, 20)).error().code == ErrorCode::invalid_input);
  CHECK(decode.stats(kModel).handing_over == Pages{1});
  CHECK(decode.cancel(RequestId{1}));
  pair.check_empty();
}

TEST_CASE(
    "random hand-overs beside other work, with cancels and scarce pages, change nothing of what is said") {
  const std::uint64_t seed = 99;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Pair pair({.running_max = 6, .step_tokens = Tokens{40}}, 24);
  std::map<std::uint64_t, Run> whole, split;
  std::map<std::uint64_t, std::unique_ptr<Courier>> couriers;
  std::map<std::uint64_t, int> stage;  // 1: computing, 2: goes on there, 3: cancelled
  for (std::uint64_t number = 1; number <= 400; ++number) {
    Run run = request(number, std::int64_t(1 + random() % 300), std::int64_t(2 + random() % 40));
    run.service_class = ServiceClass(random() % 3);
    if (random() % 4 == 0) {
      whole[number] = run;
      REQUIRE((random() % 2 == 0 ? pair.prefill : pair.decode).engine().add(run));
    } else if (const auto pages = pair.decode.engine().reserve_kv(pair.wish(run))) {
      split[number] = run;
      stage[number] = 1;
      couriers[number] = std::make_unique<Courier>(pair.prefill, pair.decode);
      couriers[number]->destination.assign(pages->begin(), pages->end());
      REQUIRE(pair.prefill.engine().add_prefill(run, *couriers[number]));
    }
    for (auto steps = random() % 20; steps > 0; --steps) {
      if (pair.prefill.engine().has_work()) pair.prefill.step();
      if (pair.decode.engine().has_work()) pair.decode.step();
    }
    for (auto& [other, at] : stage) {
      if (at != 1) continue;
      if (random() % 12 == 0) {
        CHECK(pair.prefill.engine().cancel(RequestId{other}));
        CHECK(pair.decode.engine().cancel(RequestId{other}));
        at = 3;
      } else if (!pair.prefill.told(other).tokens.empty() && random() % 2 == 0) {
        pair.go_on(split[other]);
        CHECK(pair.prefill.engine().handed_over(RequestId{other}));
        at = 2;
      }
    }
  }
  for (int round = 0; round < 200; ++round) {
    pair.prefill.run_dry();
    pair.decode.run_dry();
    for (auto& [other, at] : stage) {
      if (at != 1 || pair.prefill.told(other).tokens.empty()) continue;
      pair.go_on(split[other]);
      CHECK(pair.prefill.engine().handed_over(RequestId{other}));
      at = 2;
    }
  }
  std::size_t done = 0;
  for (const auto& [number, run] : split) {
    CAPTURE(number);
    REQUIRE(stage[number] != 1);
    if (stage[number] != 2) continue;
    check_equal(pair.told(number), alone(run, kDeep));
    ++done;
  }
  CHECK(done > 50);
  for (const auto& [number, run] : whole) {
    CAPTURE(number);
    const bool first = !pair.prefill.told(number).tokens.empty();
    check_equal(first ? pair.prefill.told(number) : pair.decode.told(number), alone(run, kDeep));
  }
  pair.check_empty();
}
