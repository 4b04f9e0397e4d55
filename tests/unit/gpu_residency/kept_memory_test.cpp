// Memory that outlives its worker: found again, proven, forked by peers, and never trusted.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/memory/restore.hpp"
#include "gpu/residency/model_stock.hpp"
#include "tests/unit/gpu_residency/store_house.hpp"

namespace sangam {
namespace {

namespace fs = std::filesystem;

const ModelId kArith{"A-arith"};
const ModelId kRoman{"A-roman"};

constexpr Bytes kPool{16 << 20};
constexpr Bytes kPage{16384};

/// One life of a worker, as its runner builds it.
struct Life {
  explicit Life(const StoreHouse& house, const std::string& name = "worker/1", fs::path folder = {})
      : kept(KeptMemory::open({house.socket(), name, {kPool, kPage}}).value()),
        pool(std::make_unique<PagePool>(kept.take_device())),
        stock({segments, engine, *ops, &kept}, Bytes{64 << 20}) {
    for (const ModelId& model : {kArith, kRoman}) {
      const fs::path shipped = fs::path(SANGAM_SOURCE_DIR) / "models" / model.text();
      stock.add(model, folder.empty() || model != kArith ? shipped : folder);
    }
    if (!kept.left()) return;
    RestoredTables restored = restore(segments, *kept.left());
    lost = restored.lost;
    for (auto& [model, table] : restored.tables)
      stock.adopt(model, std::move(table), weights_noted(kept.left()->notes.at(model)));
  }

  Result<void> wake(const ModelId& model, ModelStock::Peers peers = {}) {
    if (auto begun = stock.begin(model, Residency::active, std::move(peers)); !begun) return begun;
    phases.push_back(std::string(stock.phase()));
    while (true) {
      const auto done = stock.advance(Bytes{200'000});
      if (!done) return done.error();
      if (*done) return {};
      if (phases.back() != stock.phase()) phases.emplace_back(stock.phase());
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
  KeptMemory kept;
  std::unique_ptr<PagePool> pool;
  SegmentStore segments{*pool};
  Engine engine{{}, *pool};
  ModelStock stock;
  std::vector<std::string> lost;
  std::vector<std::string> phases;
  std::uint64_t requests = 0;
};

/// The memory of a worker, as another process could reach it.
std::unique_ptr<CpuDevice> memory_of(const StoreHouse& house, const std::string& worker) {
  auto kept = DescriptorStoreClient(house.socket()).get(worker).value();
  return CpuDevice::adopt(std::move(kept[0].file), {kPool, kPage}).value();
}

/// Turns a bit of a segment of the first life.
void damage(const StoreHouse& house, const std::string& worker, const ManifestSegment& segment) {
  const auto device = memory_of(house, worker);
  *(device->arena().at(segment.place.pages[0].first) + segment.place.offset.count() + 3) ^= std::byte{1};
}

TEST_CASE("a worker that comes back finds its weights, proves them, and serves the same bits without reading") {
  const StoreHouse house;
  std::vector<TokenId> before;
  {
    Life first(house);
    CHECK_FALSE(first.kept.left());
    REQUIRE(first.wake(kArith));
    before = first.answer(kArith);
  }
  Life second(house);
  REQUIRE(second.kept.left());
  CHECK(second.lost.empty());
  CHECK(second.stock.is_adopted(kArith));
  REQUIRE(second.wake(kArith));
  CHECK(second.stock.moved() == Bytes{0});
  CHECK(second.phases == std::vector<std::string>{"ready"});
  CHECK(second.answer(kArith) == before);
  Life third(house);
  CHECK(third.stock.is_adopted(kArith));
}

TEST_CASE("what was put to sleep before the end is not found, and its pages are free") {
  const StoreHouse house;
  {
    Life first(house);
    REQUIRE(first.wake(kArith));
    REQUIRE(first.wake(kRoman));
    REQUIRE(first.stock.begin(kArith, Residency::cold));
    REQUIRE(first.stock.advance(Bytes{1}).value());
  }
  Life second(house);
  CHECK_FALSE(second.stock.is_adopted(kArith));
  CHECK(second.stock.is_adopted(kRoman));
  Bytes named;
  for (const ManifestSegment& segment : second.kept.left()->segments) named += segment.place.bytes;
  CHECK(second.segments.ledger().resident == named);
}

TEST_CASE("a turned bit in kept memory is noticed: that model is read again, its neighbour is not") {
  const StoreHouse house;
  std::vector<TokenId> before;
  {
    Life first(house);
    REQUIRE(first.wake(kArith));
    before = first.answer(kArith);
    REQUIRE(first.wake(kRoman));
  }
  {
    const Life look(house);
    const auto& slots = look.kept.left()->tables.at(kArith);
    damage(house, "worker/1", look.kept.left()->segments[slots.front().segment]);
  }
  Life second(house);
  REQUIRE(second.lost.size() == 1);
  CHECK_FALSE(second.stock.is_adopted(kArith));
  CHECK(second.stock.is_adopted(kRoman));
  REQUIRE(second.wake(kArith));
  CHECK(second.phases.front() == "read");
  CHECK(second.answer(kArith) == before);
}

TEST_CASE("weights that were replaced on storage while the worker was away are read anew") {
  const StoreHouse house;
  const fs::path copy = house.folder / "model";
  fs::copy(fs::path(SANGAM_SOURCE_DIR) / "models" / "A-arith", copy, fs::copy_options::recursive);
  {
    Life first(house, "worker/1", copy);
    REQUIRE(first.wake(kArith));
  }
  std::fstream weights(copy / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  weights.seekp(-1, std::ios::end);
  weights.put('\x3c');
  weights.close();
  Life second(house, "worker/1", copy);
  CHECK(second.stock.is_adopted(kArith));
  REQUIRE(second.wake(kArith));
  CHECK(second.phases.front() == "read");
  CHECK(second.stock.moved() > Bytes{0});
}

TEST_CASE("weights that were replaced are not taken from memory because a peer has read the new ones") {
  const StoreHouse house;
  const fs::path copy = house.folder / "model";
  fs::copy(fs::path(SANGAM_SOURCE_DIR) / "models" / "A-arith", copy, fs::copy_options::recursive);
  {
    Life first(house, "worker/1", copy);
    REQUIRE(first.wake(kArith));
  }
  std::fstream weights(copy / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
  weights.seekp(-1, std::ios::end);
  weights.put('\x3c');
  weights.close();
  Life peer(house, "worker/2", copy);
  REQUIRE(peer.wake(kArith));
  Life second(house, "worker/1", copy);
  CHECK(second.stock.is_adopted(kArith));
  REQUIRE(second.wake(kArith, {PeerWeights::open(house.socket(), "worker/2", kPage).value()}));
  CHECK(second.phases.front() == "fork");
  CHECK(second.stock.blueprint(kArith).weights_digest == peer.stock.blueprint(kArith).weights_digest);
  CHECK(second.answer(kArith) == peer.answer(kArith));
}

TEST_CASE("memory of another size, of another worker, or without a record is not used") {
  const StoreHouse house;
  {
    Life first(house);
    REQUIRE(first.wake(kArith));
  }
  const auto larger = KeptMemory::open({house.socket(), "worker/1", {Bytes{32 << 20}, kPage}});
  REQUIRE(larger);
  CHECK_FALSE(larger->left());
  CHECK(larger->notes().size() == 1);

  auto kept = DescriptorStoreClient(house.socket()).get("worker/1").value();
  REQUIRE(DescriptorStoreClient(house.socket()).put("worker/2", kept));
  const auto foreign = KeptMemory::open({house.socket(), "worker/2", {kPool, kPage}});
  REQUIRE(foreign);
  CHECK_FALSE(foreign->left());
  CHECK(foreign->notes().size() == 1);
}

TEST_CASE("without a store that answers a worker serves all the same, and says so") {
  auto memory = KeptMemory::open({"/nowhere/holder.sock", "worker/1", {kPool, kPage}});
  REQUIRE(memory);
  CHECK(memory->take_device() != nullptr);
  CHECK_FALSE(memory->notes().empty());
}

TEST_CASE("a fork copies from the peer's memory, reads no weights from storage, and computes the same bits") {
  const StoreHouse house;
  Life peer(house, "worker/1");
  REQUIRE(peer.wake(kArith));
  Life other(house, "worker/2");
  REQUIRE(other.wake(kArith, {PeerWeights::open(house.socket(), "worker/1", kPage).value()}));
  CHECK(other.phases == std::vector<std::string>{"fork", "ready"});
  CHECK(other.stock.moved() == other.stock.bytes(kArith).weights);
  CHECK(other.answer(kArith) == peer.answer(kArith));
}

TEST_CASE("a peer that overwrites what is being copied from it costs time, not bits") {
  const StoreHouse house;
  Life peer(house, "worker/1");
  REQUIRE(peer.wake(kArith));
  const auto expected = peer.answer(kArith);
  const auto source = PeerWeights::open(house.socket(), "worker/1", kPage).value();
  const Life look(house, "worker/1");
  const auto& slots = look.kept.left()->tables.at(kArith);
  damage(house, "worker/1", look.kept.left()->segments[slots.back().segment]);
  Life other(house, "worker/2");
  REQUIRE(other.wake(kArith, {source}));
  CHECK(other.phases == std::vector<std::string>{"fork", "reserve", "copy", "ready"});
  CHECK(other.answer(kArith) == expected);
}

TEST_CASE("a peer without the model is no source") {
  const StoreHouse house;
  Life peer(house, "worker/1");
  REQUIRE(peer.wake(kRoman));
  Life other(house, "worker/2");
  REQUIRE(other.wake(kArith, {PeerWeights::open(house.socket(), "worker/1", kPage).value()}));
  CHECK(other.phases.front() == "read");
}

}  // namespace
}  // namespace sangam
