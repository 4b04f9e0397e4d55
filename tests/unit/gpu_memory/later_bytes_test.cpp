// Segments whose bytes come after the load has begun: piece by piece, into scattered pages, proven, begun anew, supplied,
// shared.
#include <doctest/doctest.h>

#include "tests/unit/gpu_memory/test_devices.hpp"
#include "tests/unit/gpu_memory/weights.hpp"

using namespace sangam;
using namespace sangam::testing;

namespace {

constexpr std::int64_t kPage = 4096;

WantedSlot later(const Weight& weight) {
  WantedSlot slot = weight.wanted(false);
  slot.comes_later = true;
  return slot;
}

Result<void> put_all(SegmentLoad& load, std::size_t index, const Weight& weight, std::size_t piece) {
  const std::span<const std::byte> bytes = weight.bytes;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    auto put = load.put(index, Bytes(std::int64_t(at)), bytes.subspan(at, std::min(piece, bytes.size() - at)));
    if (!put) return put;
  }
  return {};
}

}  // namespace

TEST_CASE("bytes that come later land where they belong, also in pages that are no neighbours") {
  for (const bool scattered : {false, true}) {
    const auto pool = PagePool::create({Bytes{64 * kPage}, Bytes{kPage}}, {idle_first, true}).value();
    if (scattered) scatter(*pool, pool->owner_of(ModelId("kv")));
    SegmentStore store(*pool);
    const Weight here("here", 2 * kPage + 100, 1), far("far", 3 * kPage + 10, 2), farther("farther", 70, 3);
    const std::vector<WantedSlot> slots{later(far), here.wanted(true), later(farther)};
    auto load = store.begin(slots);
    REQUIRE(load);
    const auto awaited = load->awaited();
    REQUIRE(awaited.size() == 2);
    CHECK(awaited[0].slot == "far");
    CHECK(awaited[0].digest == digest_of(far.bytes));
    CHECK(awaited[0].bytes == Bytes(3 * kPage + 10));
    CHECK(awaited[1].slot == "farther");
    CHECK(!load->copied_all());
    // Both kinds at once.
    REQUIRE(load->copy(Bytes(100)));
    REQUIRE(put_all(*load, awaited[1].index, farther, 7));
    REQUIRE(load->copy(Bytes(kPage * 8)));
    CHECK(load->copied_all());
    CHECK(!load->complete());
    REQUIRE(put_all(*load, awaited[0].index, far, 1000));
    REQUIRE(load->complete());
    CHECK(load->copied() == load->bytes());
    const SlotTable table = store.commit(std::move(*load));
    CHECK(holds(table, here));
    CHECK(holds(table, far));
    CHECK(holds(table, farther));
  }
}

TEST_CASE("wrong bytes are noticed with the last of them, and the segment begins anew") {
  const auto pool = PagePool::create({Bytes{16 * kPage}, Bytes{kPage}}).value();
  SegmentStore store(*pool);
  const Weight far("far", 2 * kPage, 2);
  Weight wrong = far;
  wrong.bytes[5000] ^= std::byte{1};
  auto load = store.begin(std::vector{later(far)});
  REQUIRE(load);
  CHECK(put_all(*load, 0, wrong, 1000).error().code == ErrorCode::corrupt);
  CHECK(load->awaited().size() == 1);
  // Another source was half through with it when it was lost.
  REQUIRE(load->put(0, Bytes(0), std::span(wrong.bytes).first(3000)));
  REQUIRE(put_all(*load, 0, far, 4096));
  CHECK(holds(store.commit(std::move(*load)), far));
}

TEST_CASE("bytes out of order or beyond the end are refused, and what is there stays") {
  const auto pool = PagePool::create({Bytes{16 * kPage}, Bytes{kPage}}).value();
  SegmentStore store(*pool);
  const Weight far("far", kPage, 2);
  const std::span<const std::byte> bytes = far.bytes;
  auto load = store.begin(std::vector{later(far)});
  REQUIRE(load);
  REQUIRE(load->put(0, Bytes(0), bytes.first(100)));
  CHECK(load->put(0, Bytes(200), bytes.subspan(200, 10)).error().code == ErrorCode::corrupt);
  const std::vector<std::byte> too_many(kPage);
  CHECK(load->put(0, Bytes(100), too_many).error().code == ErrorCode::corrupt);
  REQUIRE(load->put(0, Bytes(100), bytes.subspan(100)));
  CHECK(holds(store.commit(std::move(*load)), far));
}

TEST_CASE("what nobody sends can be supplied, of the right size only, and is proven like all else") {
  const auto pool = PagePool::create({Bytes{32 * kPage}, Bytes{kPage}}).value();
  const Pages free = pool->pages().free();
  SegmentStore store(*pool);
  const Weight far("far", 3 * kPage, 2), near("near", kPage, 3), other("other", 3 * kPage, 4);
  auto load = store.begin(std::vector{near.wanted(true), later(far)});
  REQUIRE(load);
  REQUIRE(load->copy(load->bytes()));
  REQUIRE(load->put(1, Bytes(0), std::span(far.bytes).first(100)));
  CHECK(load->supply(1, near.bytes).error().code == ErrorCode::invalid_input);
  SUBCASE("the bytes themselves") {
    REQUIRE(load->supply(1, far.bytes));
    while (!load->complete()) REQUIRE(load->copy(Bytes(1000)));
    const SlotTable table = store.commit(std::move(*load));
    CHECK(holds(table, far));
    CHECK(holds(table, near));
  }
  SUBCASE("other bytes, and then nothing is kept") {
    REQUIRE(load->supply(1, other.bytes));
    CHECK(load->copy(Bytes(1 << 20)).error().code == ErrorCode::corrupt);
    load = make_error(ErrorCode::cancelled, "dropped");
    CHECK(pool->pages().free() == free);
    CHECK(store.ledger().resident == Bytes{0});
  }
}

TEST_CASE("what is resident is not awaited, and two slots of one digest are awaited once") {
  const auto pool = PagePool::create({Bytes{32 * kPage}, Bytes{kPage}}).value();
  SegmentStore store(*pool);
  const Weight far("far", kPage, 2), here("here", kPage, 3);
  const auto table = store.load(tensors_of({&here}));
  REQUIRE(table);
  Weight twin = far;
  twin.name = "twin";
  auto load = store.begin(std::vector{later(far), later(here), later(twin)});
  REQUIRE(load);
  CHECK(load->awaited().size() == 1);
  CHECK(load->bytes() == Bytes(kPage));
  REQUIRE(put_all(*load, load->awaited()[0].index, far, kPage));
  const SlotTable made = store.commit(std::move(*load));
  CHECK(holds(made, far));
  CHECK(holds(made, twin));
  CHECK(holds(made, here));
  CHECK(store.ledger().segments == 2);
}

TEST_CASE("a slot with a source is a source for others of its digest, whichever comes first") {
  for (const bool later_first : {true, false}) {
    CAPTURE(later_first);
    const auto pool = PagePool::create({Bytes{32 * kPage}, Bytes{kPage}}).value();
    SegmentStore store(*pool);
    const Weight far("far", 2 * kPage, 2);
    Weight twin = far, third = far;
    twin.name = "twin";
    third.name = "third";
    std::vector<WantedSlot> slots{later(far), twin.wanted(true), third.wanted(true)};
    if (!later_first) std::swap(slots[0], slots[1]);
    auto load = store.begin(slots);
    REQUIRE(load);
    CHECK(load->awaited().empty());
    CHECK(load->bytes() == Bytes(2 * kPage));
    while (!load->is_proven()) REQUIRE(load->prove(Bytes(1000)));
    while (!load->complete()) REQUIRE(load->copy(Bytes(1000)));
    const SlotTable made = store.commit(std::move(*load));
    CHECK(holds(made, far));
    CHECK(holds(made, twin));
    CHECK(holds(made, third));
    CHECK(store.ledger().segments == 1);
  }
}

TEST_CASE("what is here is compared, what is not is known by its digest, and pages move only before bytes come") {
  const auto pool = PagePool::create({Bytes{32 * kPage}, Bytes{kPage}}).value();
  SegmentStore store(*pool, [](std::span<const std::byte>) { return Digest{}; });
  const Weight there("there", 4 * kPage, 1), far("far", 4 * kPage, 2), longer("longer", 5 * kPage, 3);
  Weight near("near", 4 * kPage, 1);
  near.bytes.back() ^= std::byte{1};
  const auto table = store.load(tensors_of({&there})).value();
  std::vector<WantedSlot> slots{later(far), near.wanted(true), later(longer)};
  for (WantedSlot& slot : slots) slot.digest = Digest{};
  auto load = store.begin(slots);
  REQUIRE(load);
  CHECK(load->bytes() == Bytes(5 * kPage));
  while (!load->is_proven()) REQUIRE(load->prove(Bytes(kPage)));
  CHECK(load->bytes() == Bytes(9 * kPage));
  REQUIRE(load->awaited().size() == 1);
  CHECK(load->awaited()[0].slot == "longer");
  REQUIRE(put_all(*load, load->awaited()[0].index, longer, 1000));
  CHECK(!load->complete());
  while (!load->complete()) REQUIRE(load->copy(Bytes(1000)));
  const SlotTable made = store.commit(std::move(*load));
  CHECK(made.find("far")->bytes.data() == table.find("there")->bytes.data());
  CHECK(holds(made, near));
  CHECK(holds(made, longer));
  CHECK(store.ledger().segments == 3);
}
