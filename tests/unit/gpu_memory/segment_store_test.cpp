// Segments: stored once, all or nothing, in one piece or in many, copied in steps, told apart by their bytes.
#include "gpu/memory/segment_store.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "tests/unit/gpu_memory/test_devices.hpp"
#include "tests/unit/gpu_memory/weights.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

constexpr std::int64_t kPage = 4096;
const ModelId kModel("m");

std::unique_ptr<PagePool> pool_of(std::int64_t pages) {
  return PagePool::create({Bytes{pages * kPage}, Bytes{kPage}}, {idle_first, true}).value();
}

const Segment& segment_of(const SlotTable& table, const std::string& name) {
  return *table.slots().at(name).segment;
}

}  // namespace

TEST_CASE("equal bytes lie in the pool once, and go with the last table that names them") {
  const auto pool = pool_of(64);
  SegmentStore store(*pool);
  const Weight base("base", 8 * kPage, 1);
  const Weight mine("mine", 8 * kPage, 2);
  const Weight tied("tied", 8 * kPage, 1);

  auto first = store.load(tensors_of({&base, &tied}));
  REQUIRE(first);
  CHECK(first->bytes() == Bytes{16 * kPage});
  CHECK(store.ledger().resident == Bytes{8 * kPage});
  CHECK(store.ledger().segments == 1);
  {
    auto second = store.load(tensors_of({&base, &mine}));
    REQUIRE(second);
    CHECK(holds(*second, base));
    CHECK(holds(*second, mine));
    CHECK(second->find("base")->bytes.data() == first->find("tied")->bytes.data());
    CHECK(store.ledger().pages == Pages{16});
    first = SlotTable{};
    CHECK(holds(*second, base));
  }
  CHECK(store.ledger().segments == 0);
  CHECK(pool->pages().free() == Pages{64});
  CHECK(pool->pages().largest_extent() == Pages{64});
}

TEST_CASE("small tensors share pages, each on a boundary of 64 bytes") {
  const auto pool = pool_of(64);
  SegmentStore store(*pool);
  std::vector<Weight> norms;
  std::vector<const Weight*> all;
  for (int i = 0; i < 40; ++i) norms.emplace_back("norm" + std::to_string(i), 100 + i, i);
  for (const Weight& norm : norms) all.push_back(&norm);
  const auto table = store.load(tensors_of(all));
  REQUIRE(table);
  for (const Weight& norm : norms) {
    CHECK(holds(*table, norm));
    CHECK(reinterpret_cast<std::uintptr_t>(table->find(norm.name)->bytes.data()) % 64 == 0);
  }
  // 29 tensors of up to 128 bytes take 128 each, 11 take 192: 5824 bytes.
  CHECK(store.ledger().pages == Pages{2});
  CHECK(pool->pages().free() == Pages{62});
}

TEST_CASE("less than a page a load is lost to rounding") {
  const auto pool = pool_of(2000);
  SegmentStore store(*pool);
  std::vector<Weight> weights;
  std::vector<const Weight*> all;
  std::int64_t aligned = 0;
  for (int i = 0; i < 120; ++i) {
    weights.emplace_back(std::to_string(i), 500 + std::size_t(i) * 331, i);
    aligned += (std::int64_t(weights.back().bytes.size()) + 63) / 64 * 64;
  }
  for (const Weight& weight : weights) all.push_back(&weight);
  const auto table = store.load(tensors_of(all));
  REQUIRE(table);
  CHECK(store.ledger().resident == table->bytes());
  CHECK(store.ledger().pages.count() == (aligned + kPage - 1) / kPage);
  for (const Weight& weight : weights) CHECK(holds(*table, weight));
}

TEST_CASE("of a model that goes, only pages stay that a shared segment lies in") {
  const auto pool = pool_of(100);
  SegmentStore store(*pool);
  const Weight before("a", 10 * kPage, 1);
  const Weight shared("b", 2 * kPage + 100, 2);
  const Weight after("c", 10 * kPage, 3);
  auto first = store.load(tensors_of({&before, &shared, &after})).value();
  const auto second = store.load(tensors_of({&shared})).value();
  CHECK(store.ledger().pages == Pages{23});
  first = SlotTable();
  CHECK(store.ledger().pages == Pages{3});
  CHECK(holds(second, shared));
}

TEST_CASE("a load that lacks pages changes nothing and says which numbers decided") {
  const auto pool = pool_of(10);
  SegmentStore store(*pool);
  const Weight resident("resident", 4 * kPage, 1);
  const auto table = store.load(tensors_of({&resident}));
  REQUIRE(table);
  const Weight fits("fits", 3 * kPage, 2);
  const Weight too_much("too_much", 4 * kPage, 3);
  const PoolLedger before = pool->ledger();
  const auto refused = store.load(tensors_of({&fits, &resident, &too_much}));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::exhausted);
  CHECK(refused.error().context.find("needed=7") != std::string::npos);
  CHECK(refused.error().context.find("free=6") != std::string::npos);
  CHECK(pool->ledger() == before);
  CHECK(store.ledger().resident == Bytes{4 * kPage});
  CHECK(store.load(tensors_of({&fits})));
}

TEST_CASE("segments whose digests collide are told apart by their bytes") {
  const auto pool = pool_of(64);
  SegmentStore store(*pool, [](std::span<const std::byte>) { return Digest{}; });
  const Weight one("one", kPage, 1);
  const Weight two("two", kPage, 2);
  const Weight longer("longer", 2 * kPage, 1);
  const auto first = store.load(tensors_of({&one, &two}));
  const auto second = store.load(tensors_of({&two, &longer, &one}));
  REQUIRE(first);
  REQUIRE(second);
  for (const Weight* expected : {&one, &two, &longer}) CHECK(holds(*second, *expected));
  CHECK(store.ledger().segments == 3);
}

TEST_CASE("a slot that is missing is named") {
  const SlotTable empty;
  const auto missing = empty.lookup()("model.norm.weight");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().context.find("model.norm.weight") != std::string::npos);
}

TEST_CASE("weights over scattered pages read as one piece, and their place tells a peer the true order") {
  const auto pool = pool_of(40);
  const PageOwner owner = pool->owner_of(kModel);
  const auto kept = scatter(*pool, owner);
  SegmentStore store(*pool);
  const Weight small("a", 1000, 1);
  const Weight large("b", 5 * kPage, 2);
  {
    const auto table = store.load(tensors_of({&small, &large})).value();
    CHECK(holds(table, small));
    CHECK(holds(table, large));
    CHECK(reinterpret_cast<std::uintptr_t>(table.find("b")->bytes.data()) % 64 == 0);

    const SegmentPlace& place = segment_of(table, "b").place();
    CHECK(place.pages.size() == 6);
    CHECK(place.offset == Bytes{1024});  // 1000 bytes and the alignment
    // A peer: pages by file descriptor in the published order, then the offset.
    const auto shared = pool->device().share(place.pages).value();
    const auto peer = pool_of(1);
    const auto span = peer->device().import(shared, Access::read).value();
    CHECK(large.is(span->bytes().subspan(1024, 5 * kPage)));
    // And the same by addresses, as a copy engine would gather them.
    std::vector<std::byte> gathered;
    for (const auto piece : pieces_of(place, pool->arena()))
      gathered.insert(gathered.end(), piece.begin(), piece.end());
    CHECK(large.is(gathered));
    CHECK(dies([&] { *const_cast<std::byte*>(table.find("b")->bytes.data()) = std::byte{1}; }));
  }
  CHECK(pool->ledger().weights == Pages{0});
  for (const PageId page : kept) pool->give_back(page, owner);
}

TEST_CASE("a fork moves only what the peer lacks, from scattered pages to scattered pages") {
  const auto source_pool = pool_of(80);
  const auto target_pool = pool_of(80);
  scatter(*source_pool, source_pool->owner_of(kModel));
  scatter(*target_pool, target_pool->owner_of(kModel));
  SegmentStore source(*source_pool);
  SegmentStore target(*target_pool);
  const Weight embedding("embedding", 7 * kPage + 5, 1);
  const Weight head("head", 7 * kPage + 5, 1);  // tied
  const Weight mine("mine", 3 * kPage, 2);
  const Weight common("common", 2 * kPage, 3);
  const auto published = source.load(tensors_of({&embedding, &head, &mine, &common})).value();
  const auto resident = target.load(tensors_of({&common})).value();

  std::vector<WantedSlot> slots = published.wanted();
  const std::vector<Digest> missing = target.missing(slots);
  CHECK(missing.size() == 2);
  std::vector<std::unique_ptr<PageSpan>> spans;
  for (WantedSlot& slot : slots) {
    if (std::find(missing.begin(), missing.end(), slot.digest) == missing.end()) continue;
    const SegmentPlace& place = segment_of(published, slot.name).place();
    const auto shared = source_pool->device().share(place.pages).value();
    spans.push_back(target_pool->device().import(shared, Access::read).value());
    slot.source =
        spans.back()->bytes().subspan(std::size_t(place.offset.count()), std::size_t(place.bytes.count()));
  }
  auto load = target.begin(slots).value();
  CHECK(load.bytes() == Bytes{10 * kPage + 5});
  while (!load.is_proven()) REQUIRE(load.prove(Bytes{3000}));  // the tied ones
  while (!load.complete()) REQUIRE(load.copy(Bytes{3000}));
  const SlotTable forked = target.commit(std::move(load));
  for (const Weight* weight : {&embedding, &head, &mine, &common}) CHECK(holds(forked, *weight));
  CHECK(forked.find("embedding")->bytes.data() == forked.find("head")->bytes.data());
  CHECK(forked.find("common")->bytes.data() == resident.find("common")->bytes.data());
  CHECK(target.ledger().segments == 3);
}

TEST_CASE("a segment that nobody has is named with its slot, and nothing is reserved") {
  const auto pool = pool_of(8);
  SegmentStore store(*pool);
  const Weight absent("absent", kPage, 1);
  const auto refused = store.begin(std::vector{absent.wanted(false)});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::not_found);
  CHECK(refused.error().context.find("absent") != std::string::npos);
  CHECK(refused.error().context.find(hex_of(digest_of(absent.bytes))) != std::string::npos);
  CHECK(pool->ledger().free == Pages{8});
}

TEST_CASE("bytes that are not what their digest says are refused, whatever their source") {
  const auto pool = pool_of(8);
  SegmentStore store(*pool);
  const Weight good("good", kPage, 1);
  Weight bad("bad", kPage, 2);
  const std::vector slots{good.wanted(true), bad.wanted(true)};
  bad.bytes[7] ^= std::byte{1};
  auto load = store.begin(slots).value();
  CHECK(load.copy(Bytes{kPage}));
  const auto refused = load.copy(Bytes{kPage});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::corrupt);
  CHECK_FALSE(load.complete());
  CHECK(pool->ledger().reserved == Pages{2});
  load = store.begin({}).value();
  CHECK(pool->ledger().free == Pages{8});
  CHECK(store.ledger().segments == 0);
}

TEST_CASE("a load copies in another thread, and dropping it at any point gives everything back") {
  const auto pool = pool_of(64);
  SegmentStore store(*pool);
  const Weight first("first", 5 * kPage + 11, 1);
  const Weight second("second", 3 * kPage, 2);
  const std::vector slots{first.wanted(true), second.wanted(true)};
  for (int steps = 0; steps <= 9; ++steps) {
    auto load = store.begin(slots).value();
    CHECK(pool->ledger().reserved == Pages{9});
    std::thread([&] {
      for (int step = 0; step < steps; ++step) (void)load.copy(Bytes{kPage});
    }).join();
    CHECK(load.copied() == Bytes{std::min<std::int64_t>(steps * kPage, 8 * kPage + 11)});
    CHECK(load.complete() == (steps == 9));
  }
  CHECK(pool->ledger().free == Pages{64});
  auto load = store.begin(slots).value();
  std::thread([&] { CHECK(load.copy(Bytes{1 << 20})); }).join();
  const SlotTable table = store.commit(std::move(load));
  CHECK(holds(table, first));
  CHECK(holds(table, second));
}

TEST_CASE("loads under way at the same time share what the first of them makes resident") {
  const auto pool = pool_of(64);
  SegmentStore store(*pool);
  const Weight shared("shared", 5 * kPage, 1);
  const Weight mine("mine", 2 * kPage, 2);
  auto first = store.begin(std::vector{shared.wanted(true)}).value();
  auto second = store.begin(std::vector{mine.wanted(true), shared.wanted(true)}).value();
  CHECK(pool->ledger().reserved == Pages{12});
  REQUIRE(first.copy(Bytes{1 << 20}));
  REQUIRE(second.copy(Bytes{1 << 20}));
  const SlotTable a = store.commit(std::move(first));
  const SlotTable b = store.commit(std::move(second));
  CHECK(a.find("shared")->bytes.data() == b.find("shared")->bytes.data());
  CHECK(store.ledger().segments == 2);
  CHECK(pool->ledger().weights == Pages{7});
  CHECK(pool->ledger().reserved == Pages{0});
}

TEST_CASE("a load keeps what it shares resident until it is committed") {
  const auto pool = pool_of(16);
  SegmentStore store(*pool);
  const Weight shared("shared", 5 * kPage, 1);
  auto first = store.load(tensors_of({&shared})).value();
  auto load = store.begin(std::vector{shared.wanted(false)}).value();
  CHECK(load.bytes() == Bytes{0});
  first = SlotTable();
  CHECK(holds(store.commit(std::move(load)), shared));
  CHECK(pool->ledger().free == Pages{16});
}

TEST_CASE("what is there is compared piece by piece, and what only looks equal gets pages of its own") {
  for (const std::int64_t pages : {12, 11}) {
    CAPTURE(pages);
    const auto pool = pool_of(pages);
    SegmentStore store(*pool, [](std::span<const std::byte>) { return Digest{}; });
    const Weight there("there", 4 * kPage, 1);
    Weight near("near", 4 * kPage, 1), twin("twin", 4 * kPage, 1), far("far", 4 * kPage, 3);
    near.bytes.back() ^= std::byte{1};
    const auto table = store.load(tensors_of({&there})).value();
    std::vector<WantedSlot> slots;
    for (const Weight* weight : {&near, &twin, &far}) {
      slots.push_back(weight->wanted(true));
      slots.back().digest = Digest{};
    }
    auto load = store.begin(slots).value();
    CHECK(load.bytes() == Bytes{0});
    CHECK_FALSE(load.is_proven());
    CHECK_FALSE(load.complete());
    Result<void> proven;
    int pieces = 0;
    for (; proven && !load.is_proven(); ++pieces) proven = load.prove(Bytes{2 * kPage});
    CHECK(pieces >= 6);  // three of four pages each, two at a time
    CHECK(proven.has_value() == (pages == 12));
    if (!proven) {
      CHECK(proven.error().code == ErrorCode::exhausted);
      CHECK(pool->ledger().reserved == Pages{0});
      CHECK_FALSE(load.complete());
      continue;
    }
    CHECK(load.bytes() == Bytes{8 * kPage});
    CHECK(pool->ledger().reserved == Pages{8});
    while (!load.complete()) REQUIRE(load.copy(Bytes{3000}));
    const SlotTable all = store.commit(std::move(load));
    for (const Weight* weight : {&near, &twin, &far}) CHECK(holds(all, *weight));
    CHECK(all.find("twin")->bytes.data() == table.find("there")->bytes.data());
    CHECK(store.ledger().segments == 3);
  }
}

TEST_CASE("whatever call to the device fails, a load leaves everything as it was") {
  for (int good_calls = 0; good_calls < 4; ++good_calls) {
    CAPTURE(good_calls);
    Fault fault;
    auto device = CpuDevice::create({Bytes{40 * kPage}, Bytes{kPage}}).value();
    PagePool pool(std::make_unique<FaultyDevice>(std::move(device), fault), {idle_first, true});
    const auto kept = scatter(pool, pool.owner_of(kModel));
    SegmentStore store(pool);
    const Weight weight("weight", 3 * kPage, 1);
    const PoolLedger before = pool.ledger();
    fault.good_calls = good_calls;
    const auto loaded = store.load(tensors_of({&weight}));
    CHECK(loaded.has_value() == (good_calls >= 2));  // map, copy
    if (!loaded) CHECK(pool.ledger() == before);
    if (loaded) CHECK(holds(*loaded, weight));
    CHECK(fault.happened == (good_calls < 2));
  }
}

TEST_CASE("weights on a device whose memory the host cannot reach are compared and checked by copies") {
  auto device = CpuDevice::create({Bytes{40 * kPage}, Bytes{kPage}}).value();
  PagePool pool(std::make_unique<OffHostDevice>(std::move(device)));
  const auto kept = scatter(pool, pool.owner_of(kModel));
  SegmentStore store(pool);
  const Weight weight("weight", 3 * kPage + 9, 1);
  Weight other("other", kPage, 2);
  const auto first = store.load(tensors_of({&weight})).value();
  const auto second = store.load(tensors_of({&weight, &other})).value();
  CHECK(store.ledger().segments == 2);
  CHECK(first.find("weight")->bytes.data() == second.find("weight")->bytes.data());
  CHECK(dies([&] { (void)*static_cast<const volatile std::byte*>(first.find("weight")->bytes.data()); }));
  auto view = HostView::create(pool.device(), Bytes{4 * kPage}).value();
  CHECK(weight.is(view.read(first.find("weight")->bytes).value()));
  CHECK(other.is(view.read(second.find("other")->bytes).value()));
  const std::vector slots{other.wanted(true)};
  other.bytes[0] ^= std::byte{1};
  auto load = store.begin(slots).value();
  REQUIRE(load.prove(Bytes{kPage}));  // not equal to what is there under its digest
  CHECK(load.bytes() == Bytes{kPage});
  CHECK_FALSE(load.copy(Bytes{kPage}));
}
