// Models between device, host memory and storage: the bytes, the bits they compute, and nothing left behind.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "gpu/residency/loader.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/residency/model_stock.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

const ModelId kArith{"A-arith"};
const ModelId kRoman{"A-roman"};
const ModelId kDate{"A-date"};

fs::path folder_of(const ModelId& model) {
  return fs::path(SANGAM_SOURCE_DIR) / "models" / model.text();
}

/// One device with so much memory, and some of the shipped models, all cold.
struct Depot {
  explicit Depot(Bytes pool_bytes = Bytes{32 << 20}, Bytes host_max = Bytes{64 << 20})
      : pool(PagePool::create({pool_bytes, Bytes{16384}}).value()), stock({segments, engine, *ops}, host_max) {
    for (const ModelId& model : {kArith, kRoman, kDate}) stock.add(model, folder_of(model));
  }

  Result<void> move(const ModelId& model, Residency target, Bytes piece = Bytes{100'000}) {
    if (auto begun = stock.begin(model, target); !begun) return begun;
    while (true) {
      const auto done = stock.advance(piece);
      if (!done) return done.error();
      if (*done) return {};
    }
  }
  std::vector<TokenId> answer(const ModelId& model) {
    Run run;
    run.request = RequestId{++requests};
    run.model = model;
    run.prompt = {257, 'A', '3', '4', '7', '+', '0', '8', '5', '='};
    run.sampling.temperature = 0.0;
    run.sampling.max_tokens = Tokens{12};
    run.sampling.ignore_eos = true;
    REQUIRE(engine.add(run));
    std::vector<TokenId> tokens;
    while (engine.has_work()) {
      for (const TokensProduced& produced : engine.step().produced)
        tokens.insert(tokens.end(), produced.tokens.begin(), produced.tokens.end());
    }
    return tokens;
  }

  std::unique_ptr<Ops> ops = make_cpu_ops({.threads = 1}).value();
  std::unique_ptr<PagePool> pool;
  SegmentStore segments{*pool};
  Engine engine{{}, *pool};
  ModelStock stock;
  std::uint64_t requests = 0;
};

std::int64_t file_bytes(const ModelId& model) {
  return std::int64_t(fs::file_size(folder_of(model) / "model.safetensors"));
}

TEST_CASE("a model computes the same bits from storage, from host memory and after it was forgotten") {
  Depot reference;
  const auto loaded = load_folder(folder_of(kArith), reference.segments, *reference.ops);
  REQUIRE(loaded);
  Depot depot;
  REQUIRE(depot.move(kArith, Residency::active));
  CHECK(depot.stock.blueprint(kArith).weights_digest == loaded->weights_digest);
  const auto first = depot.answer(kArith);
  CHECK(first.size() == 12);
  REQUIRE(depot.move(kArith, Residency::warm));
  CHECK(depot.segments.ledger().resident == Bytes{0});
  REQUIRE(depot.move(kArith, Residency::active));
  CHECK(depot.answer(kArith) == first);
  REQUIRE(depot.move(kArith, Residency::cold));
  CHECK(depot.stock.host().used() == Bytes{0});
  REQUIRE(depot.move(kArith, Residency::warm));
  REQUIRE(depot.move(kArith, Residency::active));
  CHECK(depot.answer(kArith) == first);
}

TEST_CASE("after every way there and back the device's ledger is what it was") {
  Depot depot;
  const PoolLedger before = depot.pool->ledger();
  const Pages free = depot.pool->pages().free();
  for (const Residency between : {Residency::warm, Residency::cold}) {
    REQUIRE(depot.move(kArith, Residency::active));
    CHECK(depot.pool->pages().free() < free);
    REQUIRE(depot.move(kArith, between));
    CHECK(depot.pool->pages().free() == free);
  }
  CHECK(depot.pool->ledger().weights == before.weights);
  CHECK(depot.pool->ledger().reserved == before.reserved);
}

TEST_CASE("bytes are what the checkpoint holds: missing before, own after, in host memory asleep") {
  Depot depot;
  CHECK(depot.stock.bytes(kArith).weights == Bytes{0});
  REQUIRE(depot.move(kArith, Residency::warm));
  const ModelBytes warm = depot.stock.bytes(kArith);
  // The file holds the tensors and a header of some kilobytes.
  CHECK(warm.weights.count() <= file_bytes(kArith));
  CHECK(warm.weights.count() > file_bytes(kArith) - 32'768);
  CHECK(warm.missing == warm.weights);
  CHECK(warm.host == warm.weights);
  CHECK(warm.own == Bytes{0});
  REQUIRE(depot.move(kArith, Residency::active));
  const ModelBytes active = depot.stock.bytes(kArith);
  CHECK(active.missing == Bytes{0});
  CHECK(active.own == active.weights);
}

/// A second model with the same weights, under another folder, but for one tensor's last byte.
fs::path variant_of(const ModelId& model) {
  const fs::path folder = fs::temp_directory_path() / ("sangam-variant-" + std::to_string(getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& file : fs::directory_iterator(folder_of(model))) {
    if (file.is_regular_file()) fs::copy_file(file.path(), folder / file.path().filename());
  }
  std::fstream weights(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  weights.seekg(-1, std::ios::end);
  const char last = char(weights.get());
  weights.seekp(-1, std::ios::end);
  weights.put(char(last ^ 1));
  return folder;
}

TEST_CASE("a variant moves only what differs, to the device and to host memory, and its neighbour stays") {
  Depot depot;
  const ModelId variant{"variant"};
  depot.stock.add(variant, variant_of(kArith));
  REQUIRE(depot.move(kArith, Residency::warm));
  REQUIRE(depot.move(kArith, Residency::active));
  const Bytes host_of_one = depot.stock.host().used();
  REQUIRE(depot.move(variant, Residency::warm));
  const Bytes differs = depot.stock.bytes(variant).missing;
  CHECK(differs > Bytes{0});
  CHECK(differs < Bytes(depot.stock.bytes(variant).weights.count() / 2));
  CHECK(depot.stock.host().used() == host_of_one + differs);
  const Bytes moved = depot.stock.moved();
  REQUIRE(depot.move(variant, Residency::active));
  CHECK(depot.stock.moved() - moved == differs);
  CHECK(depot.stock.shared() == depot.stock.bytes(kArith).weights - differs);
  CHECK(depot.stock.bytes(kArith).own == differs);
  const auto answer = depot.answer(kArith);
  REQUIRE(depot.move(variant, Residency::cold));
  CHECK(depot.answer(kArith) == answer);
  CHECK(depot.stock.shared() == Bytes{0});
  fs::remove_all(fs::temp_directory_path() / ("sangam-variant-" + std::to_string(getpid())));
}

TEST_CASE("a wake that finds no room changes nothing, says by how much, and knows who would have to go") {
  Depot probe;
  REQUIRE(probe.move(kArith, Residency::warm));
  const std::int64_t weights = probe.stock.bytes(kArith).weights.count();
  Depot depot(Bytes{weights * 3 / 2});
  REQUIRE(depot.move(kArith, Residency::active));
  const Pages free = depot.pool->pages().free();
  const auto full = depot.move(kRoman, Residency::active);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::exhausted);
  CHECK(depot.pool->pages().free() == free);
  CHECK(depot.stock.residency(kRoman) == Residency::cold);
  CHECK_FALSE(depot.stock.would_fit(kRoman, {}));
  CHECK(depot.stock.would_fit(kRoman, {{kArith}}));
  REQUIRE(depot.move(kArith, Residency::warm));
  const Bytes moved = depot.stock.moved();
  REQUIRE(depot.move(kRoman, Residency::active));
  CHECK(depot.stock.moved() - moved == depot.stock.bytes(kRoman).weights);  // It was read before.
}

TEST_CASE("a folder that changes while its model waits for room is read again") {
  Depot probe;
  REQUIRE(probe.move(kArith, Residency::warm));
  const std::string original = probe.stock.blueprint(kArith).weights_digest;
  Depot depot(Bytes{probe.stock.bytes(kArith).weights.count() * 3 / 2});
  const ModelId variant{"variant"};
  const fs::path folder = variant_of(kArith);
  depot.stock.add(variant, folder);
  REQUIRE(depot.move(kRoman, Residency::active));
  CHECK(depot.move(variant, Residency::active).error().code == ErrorCode::exhausted);
  fs::copy_file(folder_of(kArith) / "model.safetensors", folder / "model.safetensors",
                fs::copy_options::overwrite_existing);
  REQUIRE(depot.move(kRoman, Residency::cold));
  REQUIRE(depot.move(variant, Residency::active));
  CHECK(depot.stock.blueprint(variant).weights_digest == original);
  fs::remove_all(folder);
}

TEST_CASE("what turned out wrong is read anew by the next try") {
  Depot depot;
  const ModelId variant{"variant"};
  const fs::path folder = variant_of(kArith);
  depot.stock.add(variant, folder);
  REQUIRE(depot.stock.begin(variant, Residency::active));
  while (depot.stock.phase() != "copy") REQUIRE_FALSE(depot.stock.advance(Bytes{100'000}).value());
  {
    // In place, under the mapping: as a copy tool does that does not rename.
    std::fstream weights(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    weights.seekp(-1000, std::ios::end);
    weights.put('\x11');
  }
  Result<bool> done = false;
  while (done && !*done) done = depot.stock.advance(Bytes{100'000});
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().code == ErrorCode::corrupt);
  REQUIRE(depot.move(variant, Residency::active));
  CHECK(depot.answer(variant).size() == 12);
  fs::remove_all(folder);
}

TEST_CASE("host memory keeps to its budget: who is cheap to read again gives way and is cold then") {
  Depot probe;
  REQUIRE(probe.move(kArith, Residency::warm));
  const std::int64_t weights = probe.stock.bytes(kArith).weights.count();
  Depot depot(Bytes{64 << 20}, Bytes{weights * 5 / 2});
  REQUIRE(depot.move(kArith, Residency::active));
  REQUIRE(depot.move(kArith, Residency::warm));  // Used once.
  REQUIRE(depot.move(kRoman, Residency::warm));  // Never used.
  REQUIRE(depot.move(kDate, Residency::warm));
  CHECK(depot.stock.host().used() <= depot.stock.host().max());
  CHECK(depot.stock.take_demoted() == std::vector<ModelId>{kRoman});
  CHECK(depot.stock.residency(kRoman) == Residency::cold);
  CHECK(depot.stock.residency(kArith) == Residency::warm);
  CHECK(depot.stock.residency(kDate) == Residency::warm);
}

TEST_CASE("without host memory a model that leaves the device goes all the way, and says so") {
  Depot depot(Bytes{32 << 20}, Bytes{0});
  REQUIRE(depot.move(kArith, Residency::active));
  REQUIRE(depot.move(kArith, Residency::warm));
  CHECK(depot.stock.residency(kArith) == Residency::cold);
  CHECK(depot.stock.take_demoted() == std::vector<ModelId>{kArith});
  const auto refused = depot.move(kArith, Residency::warm);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::exhausted);
}

TEST_CASE("a move that is abandoned after any piece leaves nothing behind, and the next one is good") {
  Depot depot;
  const Pages free = depot.pool->pages().free();
  for (const Residency target : {Residency::active, Residency::warm}) {
    for (int pieces = 0;; ++pieces) {
      REQUIRE(depot.stock.begin(kArith, target));
      bool done = false;
      for (int i = 0; i < pieces && !done; ++i) done = depot.stock.advance(Bytes{60'000}).value();
      if (done) break;
      depot.stock.abandon();
      CHECK(depot.pool->pages().free() == free);
      CHECK(depot.stock.host().used() == Bytes{0});
      CHECK(depot.stock.residency(kArith) == Residency::cold);
    }
    CHECK(depot.stock.residency(kArith) == target);
    REQUIRE(depot.move(kArith, Residency::cold));
  }
}

TEST_CASE("a folder that is broken or gone fails by name and leaves nothing behind") {
  Depot depot;
  const ModelId gone{"gone"};
  depot.stock.add(gone, "/nowhere/at/all");
  const auto missing = depot.stock.begin(gone, Residency::active);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().context.find("/nowhere/at/all") != std::string::npos);
  REQUIRE(depot.move(kArith, Residency::active));
}

}  // namespace
}  // namespace sangam
