// A pool that outlives its process: what is found again, and what damaged or strange memory is not taken for.
#include "gpu/memory/restore.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gpu/memory/manifest.hpp"
#include "gpu/memory/segment_shares.hpp"
#include "tests/unit/gpu_memory/test_devices.hpp"
#include "tests/unit/gpu_memory/weights.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kPages = 64;
const CpuDeviceOptions kOptions{Bytes{kPages * kPage}, Bytes{kPage}};
const ManifestIdentity kIdentity{Bytes{kPage}, Pages{kPages}, digest_of("host 1")};
const ModelId kBase("base");
const ModelId kVariant("variant");

/// What a holder keeps of a pool: two files.
struct Kept {
  FileDescriptor memory;
  FileDescriptor manifest;

  [[nodiscard]] static FileDescriptor twin(const FileDescriptor& file) {
    return FileDescriptor(fcntl(file.number(), F_DUPFD_CLOEXEC, 0));
  }
};

/// A worker's memory, made or taken over.
struct Worker {
  explicit Worker(const Kept& kept)
      : pool(CpuDevice::adopt(Kept::twin(kept.memory), kOptions).value()),
        store(pool),
        manifest(Manifest::adopt(Kept::twin(kept.manifest), kIdentity).value()) {}

  PagePool pool;
  SegmentStore store;
  Manifest manifest;
};

Kept fresh() {
  return {CpuDevice::create(kOptions).value()->file().value(),
          Manifest::create(kIdentity).value().file().value()};
}

void flip(int file, std::int64_t offset) {
  std::byte byte{};
  REQUIRE(pread(file, &byte, 1, offset) == 1);
  byte ^= std::byte{0x10};
  REQUIRE(pwrite(file, &byte, 1, offset) == 1);
}

struct Weights {
  Weight embedding{"embedding", 3 * kPage + 100, 1};
  Weight head{"head", 3 * kPage + 100, 1};  // tied
  Weight base{"proj", 5 * kPage, 2};
  Weight variant{"proj", 5 * kPage, 3};
  Weight norm{"norm", 100, 4};
  Weight empty{"none", 0, 5};

  [[nodiscard]] std::vector<NamedTensor> of_base() const {
    return tensors_of({&embedding, &head, &base, &norm, &empty});
  }
  [[nodiscard]] std::vector<NamedTensor> of_variant() const {
    return tensors_of({&embedding, &variant, &norm});
  }
};

struct Tables {
  SlotTable base;
  SlotTable variant;
  [[nodiscard]] std::map<ModelId, const SlotTable*> named() const {
    return {{kBase, &base}, {kVariant, &variant}};
  }
};

Tables load_both(Worker& worker, const Weights& weights) {
  Tables tables{worker.store.load(weights.of_base()).value(),
                worker.store.load(weights.of_variant()).value()};
  REQUIRE(worker.manifest.write(record_of(tables.named())));
  return tables;
}

/// The bytes of the newest record's place in the manifest's file.
constexpr std::int64_t kPlaceBytes = std::int64_t(Manifest::kRecordBytesMax) + 64;

}  // namespace

TEST_CASE("a restarted worker finds its tables resident, shared as before, and loads on beside them") {
  const Weights weights;
  const Kept kept = fresh();
  PoolLedger before;
  {
    Worker first(kept);
    const auto held = scatter(first.pool, first.pool.owner_of(kBase));  // so that segments lie in pieces
    const Tables tables = load_both(first, weights);
    before = first.pool.ledger();
    for (const PageId page : held) first.pool.give_back(page, first.pool.owner_of(kBase));
  }
  Worker second(kept);
  const auto record = second.manifest.read().value();
  RestoredTables restored = restore(second.store, record);
  CHECK(restored.lost.empty());
  REQUIRE(restored.tables.size() == 2);
  const SlotTable& base = restored.tables.at(kBase);
  const SlotTable& variant = restored.tables.at(kVariant);
  for (const Weight* weight :
       {&weights.embedding, &weights.head, &weights.base, &weights.norm, &weights.empty})
    CHECK(holds(base, *weight));
  for (const Weight* weight : {&weights.embedding, &weights.variant, &weights.norm})
    CHECK(holds(variant, *weight));
  CHECK(base.find("embedding")->bytes.data() == variant.find("embedding")->bytes.data());
  CHECK(base.find("embedding")->bytes.data() == base.find("head")->bytes.data());
  CHECK(base.find("proj")->shape == std::vector<std::int64_t>{5 * kPage});
  CHECK(second.pool.ledger().weights == before.weights);
  CHECK(second.pool.ledger().free == Pages{kPages} - before.weights);

  const Weight more("more", 2 * kPage, 9);
  const auto loaded = second.store.load(tensors_of({&weights.base, &more})).value();
  CHECK(loaded.find("proj")->bytes.data() == base.find("proj")->bytes.data());
  restored.tables.clear();
  CHECK(holds(loaded, weights.base));
}

TEST_CASE("a byte that changed in a segment costs just the tables that name it, and their pages are free") {
  const Weights weights;
  const Kept kept = fresh();
  std::int64_t place = 0;
  {
    Worker first(kept);
    const Tables tables = load_both(first, weights);
    place = tables.variant.find("proj")->bytes.data() - first.pool.arena().base;
  }
  flip(kept.memory.number(), place + 3 * kPage + 5);
  Worker second(kept);
  const RestoredTables restored = restore(second.store, second.manifest.read().value());
  CHECK(restored.tables.count(kBase) == 1);
  CHECK(restored.tables.count(kVariant) == 0);
  REQUIRE(restored.lost.size() == 1);
  CHECK(restored.lost[0].find("variant: proj") != std::string::npos);
  CHECK(holds(restored.tables.at(kBase), weights.base));
  // 3 pages and 100 bytes, 5 pages, 100 bytes: 9 pages hold the base model.
  CHECK(second.pool.ledger().free == Pages{kPages - 9});
}

TEST_CASE("whichever byte of a manifest changed, the record before serves, and never a wrong one") {
  const Weights weights;
  const Kept kept = fresh();
  Worker first(kept);
  const auto base = first.store.load(weights.of_base()).value();
  const ManifestRecord before = record_of({{kBase, &base}});
  REQUIRE(first.manifest.write(before));
  const auto variant = first.store.load(weights.of_variant()).value();
  const ManifestRecord newest = record_of({{kBase, &base}, {kVariant, &variant}});
  REQUIRE(first.manifest.write(newest));
  const auto read = [&] { return Manifest::adopt(Kept::twin(kept.manifest), kIdentity).value().read(); };
  REQUIRE(read().value() == newest);

  // The second record lies in the first place (2 mod 2), the first in the second.
  const auto size = std::int64_t(64 + encoded(newest).size());
  for (std::int64_t at = 0; at < size; ++at) {
    CAPTURE(at);
    flip(kept.manifest.number(), at);
    const auto found = read();
    REQUIRE(found);
    REQUIRE(*found == before);
    flip(kept.manifest.number(), at);
  }
  REQUIRE(read().value() == newest);
  flip(kept.manifest.number(), kPlaceBytes + 100);
  CHECK(read().value() == newest);
  flip(kept.manifest.number(), 100);
  CHECK(read().error().code == ErrorCode::corrupt);
  REQUIRE(first.manifest.write(before));  // and it can be written again
  CHECK(read().value() == before);
}

TEST_CASE("a manifest of another pool, configuration, size or kind of file is not used") {
  const Kept kept = fresh();
  Worker worker(kept);
  CHECK(worker.manifest.read().error().code == ErrorCode::corrupt);  // nothing was written yet
  REQUIRE(worker.manifest.write({}));
  CHECK(worker.manifest.read().value() == ManifestRecord{});
  for (const ManifestIdentity& other : {ManifestIdentity{Bytes{2 * kPage}, Pages{kPages}, kIdentity.caller},
                                        ManifestIdentity{Bytes{kPage}, Pages{kPages + 1}, kIdentity.caller},
                                        ManifestIdentity{Bytes{kPage}, Pages{kPages}, digest_of("host 2")}}) {
    CHECK(Manifest::adopt(Kept::twin(kept.manifest), other).value().read().error().code ==
          ErrorCode::corrupt);
  }
  CHECK(Manifest::adopt(Kept::twin(kept.memory), kIdentity).error().code == ErrorCode::corrupt);
  FileDescriptor truncated(memfd_create("truncated", MFD_CLOEXEC));
  REQUIRE(ftruncate(truncated.number(), 2 * kPlaceBytes - 1) == 0);
  CHECK(Manifest::adopt(std::move(truncated), kIdentity).error().code == ErrorCode::corrupt);
}

TEST_CASE("a record whose places are not in the pool, or taken, restores nothing and takes nothing") {
  const Weights weights;
  const Kept kept = fresh();
  ManifestRecord record;
  {
    Worker first(kept);
    record = record_of(load_both(first, weights).named());
  }
  Worker second(kept);
  const auto restored_of = [&](const SegmentPlace& place) {
    ManifestRecord changed = record;
    for (ManifestSegment& segment : changed.segments) {
      if (segment.place.bytes > Bytes{0}) segment.place = place;
    }
    return restore(second.store, changed).tables.size();
  };
  const Bytes bytes{5 * kPage};
  CHECK(restored_of({{{PageId{kPages - 4}, Pages{5}}}, Bytes{0}, bytes}) == 0);
  CHECK(restored_of({{{PageId{0}, Pages{4}}}, Bytes{0}, bytes}) == 0);
  CHECK(restored_of({{{PageId{0}, Pages{5}}}, Bytes{kPage}, bytes}) == 0);
  CHECK(restored_of({{{PageId{0}, Pages{5}}, {PageId{9}, Pages{0}}}, Bytes{0}, bytes}) == 0);
  CHECK(restored_of({{{PageId{0}, Pages{5}}}, Bytes{0}, bytes}) == 0);  // fits, but other bytes
  CHECK(second.pool.ledger().free == Pages{kPages});

  const auto taken = second.pool.reserve_weights(Pages{2}).value();
  const RestoredTables restored = restore(second.store, record);
  CHECK(restored.tables.empty());
  CHECK(restored.lost.size() == 2);
  CHECK(second.pool.ledger().free == Pages{kPages - 2});
}

TEST_CASE("random damage to an encoded record is refused or gives slots of the right size") {
  const std::uint64_t seed = 41;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const Weights weights;
  const Kept kept = fresh();
  Worker worker(kept);
  const std::vector<std::byte> good = encoded(record_of(load_both(worker, weights).named()));
  CHECK(encoded(decoded(good).value()) == good);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes = good;
    for (auto flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] = std::byte(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const auto record = decoded(bytes);
    refused += !record;
    if (!record) continue;
    for (const auto& [model, slots] : record->tables) {
      for (const ManifestSlot& slot : slots) {
        std::int64_t size = std::int64_t(bytes_of(slot.dtype));
        for (const std::int64_t dimension : slot.shape) size *= dimension;
        REQUIRE(Bytes(size) == record->segments.at(slot.segment).place.bytes);
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a worker that is killed at any moment leaves tables that are whole") {
  const Weights weights;
  for (int life = 0; life < 8; ++life) {
    CAPTURE(life);
    const Kept kept = fresh();
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      // Loads and unloads until it is killed; a record that no longer names a table comes before its pages
      // go.
      Worker worker(kept);
      const auto base = worker.store.load(weights.of_base()).value();
      if (!worker.manifest.write(record_of({{kBase, &base}}))) _exit(1);
      for (;;) {
        const auto variant = worker.store.load(weights.of_variant()).value();
        if (!worker.manifest.write(record_of({{kBase, &base}, {kVariant, &variant}}))) _exit(1);
        if (write(ready[1], "", 1) != 1) _exit(1);
        if (!worker.manifest.write(record_of({{kBase, &base}}))) _exit(1);
      }
    }
    char byte = 0;
    for (int i = 0; i <= life * 5; ++i) REQUIRE(read(ready[0], &byte, 1) == 1);
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    close(ready[0]);
    close(ready[1]);

    Worker next(kept);
    const RestoredTables restored = restore(next.store, next.manifest.read().value());
    CHECK(restored.lost.empty());
    REQUIRE(restored.tables.count(kBase) == 1);
    CHECK(holds(restored.tables.at(kBase), weights.base));
    for (const auto& [model, table] : restored.tables) CHECK(holds(table, weights.embedding));
  }
}

TEST_CASE("a device whose memory the host cannot reach restores by copies") {
  const Weights weights;
  const Kept kept = fresh();
  {
    Worker first(kept);
    (void)load_both(first, weights);
  }
  Worker again(kept);
  PagePool pool(std::make_unique<OffHostDevice>(CpuDevice::adopt(Kept::twin(kept.memory), kOptions).value()));
  SegmentStore store(pool);
  const RestoredTables restored = restore(store, again.manifest.read().value());
  CHECK(restored.lost.empty());
  CHECK(restored.tables.size() == 2);
}

TEST_CASE("the shares of tables: total, shared and with whom, together and apart") {
  const Weights weights;
  const Kept kept = fresh();
  Worker worker(kept);
  const Tables tables = load_both(worker, weights);
  const Bytes both{3 * kPage + 100 + 100};  // embedding (tied: once) and norm
  const Bytes own{5 * kPage};
  CHECK(shares_of(tables.named()) == SegmentShares{{{kBase, {both + own, both, {{kVariant, both}}}},
                                                    {kVariant, {both + own, both, {{kBase, both}}}}},
                                                   both + own + own,
                                                   (both + own) * 2});
  CHECK(shares_of(tables.named()).together == worker.store.ledger().resident);
  CHECK(shares_of({{kBase, &tables.base}}).tables.at(kBase) == TableShares{both + own, Bytes{0}, {}});
}
