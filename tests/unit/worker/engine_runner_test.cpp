// A whole worker, from Run to RunEnded, with models that ship.
#include "actors/worker/engine_runner.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "actors/worker/worker_core.hpp"

using namespace sangam;

namespace {

const ModelId kArith("A-arith");
const ModelId kBroken("broken");
const ActorName kGateway("gateway/1");

WorkerOptions options() {
  WorkerOptions options;
  options.name = ActorName("worker/1");
  options.models = {{kBroken, SANGAM_SOURCE_DIR "/models/eval"},
                    {kArith, SANGAM_SOURCE_DIR "/models/A-arith"}};
  options.pool_bytes = Bytes{16 << 20};
  options.page_bytes = Bytes{64 << 10};
  options.threads = 1;
  return options;
}

Run ask(std::uint64_t number, const std::string& text) {
  Run run;
  run.request = RequestId{number};
  run.model = kArith;
  run.prompt = {257};
  for (const char c : text) run.prompt.push_back(TokenId(static_cast<unsigned char>(c)));
  run.sampling.temperature = 0;
  run.sampling.stop_tokens = {258};
  run.tokens_to = kGateway;
  return run;
}

}  // namespace

TEST_CASE("a worker loads what it can, says so, and answers") {
  auto runner = make_engine_runner(options());
  REQUIRE(runner);
  WorkerCore worker(options(), std::move(*runner));
  const Instant now{};
  Outbox out;
  worker.start(now, out);
  worker.on(ActorFound{kGateway, Incarnation{1}}, now, out);
  while (worker.busy()) worker.step(now, out);
  bool broken_gone = false;
  bool arith_ready = false;
  for (const Outbox::Letter& letter : out.letters) {
    if (const auto* gone = std::get_if<InstanceGone>(&letter.message)) broken_gone |= gone->model == kBroken;
    if (const auto* ready = std::get_if<InstanceReady>(&letter.message)) {
      arith_ready |= ready->model == kArith;
      CHECK(ready->prefill_tokens_per_second > 0);
      // 256 pages of 64 KiB less 37.2 of weights and an eighth; a token has 6 layers * 2 * 2 heads * 32 * 2
      // bytes = 1536.
      CHECK(ready->kv_capacity > Tokens{(256 - 43) * 42});
      CHECK(ready->kv_capacity < Tokens{(256 - 37) * 42 + 1});
      CHECK(ready->weights_digest.size() == 32);
    }
  }
  CHECK(broken_gone);
  CHECK(arith_ready);

  out.clear();
  worker.on(ask(1, "A347+085="), now, out);
  worker.on(ask(2, std::string(5000, 'A')), now, out);
  while (worker.busy()) worker.step(now, out);
  std::string said;
  std::vector<RunEnded> ended;
  for (const Outbox::Letter& letter : out.letters) {
    if (const auto* tokens = std::get_if<TokensProduced>(&letter.message)) {
      if (tokens->request == RequestId{1}) said.append(tokens->tokens.begin(), tokens->tokens.end());
      if (tokens->request == RequestId{2}) CHECK(tokens->code == ErrorCode::context_length);
    }
    if (const auto* end = std::get_if<RunEnded>(&letter.message); end && letter.to == queue_of(kArith))
      ended.push_back(*end);
  }
  CHECK(said == "2340");
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].finish == FinishReason::failed);
  CHECK(ended[1].finish == FinishReason::stop);
  CHECK(ended[1].produced == Tokens{4});
}

TEST_CASE("a model's table has each of its segments once, and the bytes of a token's keys and values") {
  auto runner = make_engine_runner(options());
  REQUIRE(runner);
  WorkerCore worker(options(), std::move(*runner));
  const ActorName oracle("oracle");
  Outbox out;
  worker.start(Instant{}, out);
  worker.on(ActorFound{oracle, Incarnation{1}}, Instant{}, out);
  worker.on(ActorFound{ActorName("lifecycle"), Incarnation{1}}, Instant{}, out);
  while (worker.busy()) worker.step(Instant{}, out);
  Bytes weights{0};
  std::vector<ModelTable> tables;
  for (const Outbox::Letter& letter : out.letters) {
    if (const auto* state = std::get_if<InstanceState>(&letter.message); state != nullptr && state->model == kArith)
      weights = state->weights;
    if (const auto* table = std::get_if<ModelTable>(&letter.message)) tables.push_back(*table);
  }
  REQUIRE(tables.size() == 1);  // Nothing is known of the broken one.
  CHECK(tables.front().model == kArith);
  CHECK(tables.front().devices == 1);
  CHECK(tables.front().kv_per_token == Bytes(6 * 2 * 2 * 32 * 2));
  Bytes sum{0};
  std::set<std::uint64_t> digests;
  for (const SegmentSize& segment : tables.front().segments) {
    sum += segment.bytes;
    digests.insert(segment.digest);
  }
  CHECK(digests.size() == tables.front().segments.size());
  CHECK(digests.size() > 6 * 7);  // Seven matrices a layer, norms and embeddings.
  CHECK(sum == weights);
}

TEST_CASE("options that this machine cannot meet are refused by name") {
  const auto code_of = [](auto change) {
    WorkerOptions changed = options();
    change(changed);
    const auto runner = make_engine_runner(changed);
    return runner ? ErrorCode::none : runner.error().code;
  };
  CHECK(code_of([](WorkerOptions& o) { o.isa = "mmx"; }) == ErrorCode::invalid_input);
  CHECK(code_of([](WorkerOptions& o) { o.running_max = 0; }) == ErrorCode::invalid_input);
  CHECK(code_of([](WorkerOptions& o) { o.page_bytes = Bytes{1000}; }) == ErrorCode::invalid_input);
  CHECK(code_of([](WorkerOptions& o) { o.pool_bytes = Bytes{std::int64_t{1} << 45}; }) ==
        ErrorCode::exhausted);
  CHECK(code_of([](WorkerOptions& o) { o.models.push_back(o.models.front()); }) == ErrorCode::invalid_input);
  CHECK(code_of([](WorkerOptions&) {}) == ErrorCode::none);
}
