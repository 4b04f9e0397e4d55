// The page pool and the segments in it.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "gpu/memory/segment_store.hpp"

using namespace sangam;

namespace {

constexpr std::int64_t kPage = 4096;

std::unique_ptr<PagePool> pool_of(std::int64_t pages) {
  return PagePool::create({Bytes{pages * kPage}, Bytes{kPage}}).value();
}

/// Owns bytes and shows them as a tensor of i8.
struct Bytes8 {
  Bytes8(std::string name, std::size_t size, int fill)
      : name(std::move(name)), bytes(size, std::byte(fill)) {}
  NamedTensor tensor() const { return {name, {DType::i8, {std::int64_t(bytes.size())}, bytes}}; }
  std::string name;
  std::vector<std::byte> bytes;
};

bool holds(const SlotTable& table, const Bytes8& expected) {
  const auto found = table.find(expected.name);
  return found && found->bytes.size() == expected.bytes.size() &&
         std::memcmp(found->bytes.data(), expected.bytes.data(), expected.bytes.size()) == 0;
}

}  // namespace

TEST_CASE("a pool's pages are distinct, writable and zero at first") {
  const auto pool = pool_of(4);
  CHECK(pool->pages().total() == Pages{4});
  for (std::uint32_t page = 0; page < 4; ++page) {
    CHECK(*pool->address_of(PageId{page}) == std::byte{0});
    std::memset(pool->address_of(PageId{page}), int(page) + 1, kPage);
  }
  CHECK(pool->arena().base[kPage - 1] == std::byte{1});
  CHECK(pool->arena().base[3 * kPage] == std::byte{4});
}

TEST_CASE("a pool that cannot be is refused with the numbers and a remedy") {
  const auto odd_page = PagePool::create({Bytes{1 << 20}, Bytes{1000}});
  REQUIRE_FALSE(odd_page);
  CHECK(odd_page.error().code == ErrorCode::invalid_input);
  CHECK(odd_page.error().context.find("1000") != std::string::npos);

  const auto too_small = PagePool::create({Bytes{4095}, Bytes{4096}});
  REQUIRE_FALSE(too_small);
  CHECK(too_small.error().code == ErrorCode::invalid_input);

  const auto too_large = PagePool::create({Bytes{std::int64_t{1} << 50}, Bytes{1 << 21}});
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().code == ErrorCode::exhausted);
  CHECK(too_large.error().context.find("1125899906842624") != std::string::npos);
}

TEST_CASE("equal bytes lie in the pool once, and go with the last table that names them") {
  const auto pool = pool_of(64);
  SegmentStore store(*pool);
  const Bytes8 base("base", 8 * kPage, 1);
  const Bytes8 mine("mine", 8 * kPage, 2);
  const Bytes8 alias("alias", 8 * kPage, 1);

  auto first = store.load(std::vector{base.tensor(), alias.tensor()});
  REQUIRE(first);
  CHECK(first->bytes() == Bytes{16 * kPage});
  CHECK(store.ledger().resident == Bytes{8 * kPage});
  CHECK(store.ledger().segments == 1);
  {
    auto second = store.load(std::vector{base.tensor(), mine.tensor()});
    REQUIRE(second);
    CHECK(holds(*second, base));
    CHECK(holds(*second, mine));
    CHECK(second->find("base")->bytes.data() == first->find("alias")->bytes.data());
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
  std::vector<Bytes8> norms;
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 40; ++i) norms.emplace_back("norm" + std::to_string(i), 100 + i, i);
  for (const Bytes8& norm : norms) tensors.push_back(norm.tensor());
  const auto table = store.load(tensors);
  REQUIRE(table);
  for (const Bytes8& norm : norms) {
    CHECK(holds(*table, norm));
    CHECK(reinterpret_cast<std::uintptr_t>(table->find(norm.name)->bytes.data()) % 64 == 0);
  }
  // 28 tensors of 100..127 bytes take 128 each, 12 of 128..139 take 128 or 192: 40 * 192 = 7680 at most.
  CHECK(store.ledger().pages == Pages{2});
  CHECK(*table->find("norm7")->bytes.data() == std::byte{7});
  CHECK(Pages{62} == pool->pages().free());
}

TEST_CASE("no more than an eighth of what tensors occupy is lost to rounding") {
  const auto pool = pool_of(2000);
  SegmentStore store(*pool);
  std::vector<Bytes8> weights;
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 120; ++i) weights.emplace_back(std::to_string(i), 500 + std::size_t(i) * 331, i);
  for (const Bytes8& weight : weights) tensors.push_back(weight.tensor());
  const auto table = store.load(tensors);
  REQUIRE(table);
  const SegmentLedger ledger = store.ledger();
  CHECK(ledger.resident == table->bytes());
  CHECK(ledger.pages.count() * kPage * 7 <= ledger.resident.count() * 8 + 7 * kPage);
  for (const Bytes8& weight : weights) CHECK(holds(*table, weight));
}

TEST_CASE("a load that lacks pages changes nothing and says which numbers decided") {
  const auto pool = pool_of(10);
  SegmentStore store(*pool);
  const Bytes8 resident("resident", 4 * kPage, 1);
  const auto table = store.load(std::vector{resident.tensor()});
  REQUIRE(table);
  const Bytes8 fits("fits", 3 * kPage, 2);
  const Bytes8 too_much("too_much", 4 * kPage, 3);
  const auto refused = store.load(std::vector{fits.tensor(), resident.tensor(), too_much.tensor()});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::exhausted);
  CHECK(refused.error().context.find("needed=7") != std::string::npos);
  CHECK(refused.error().context.find("free=6") != std::string::npos);
  CHECK(pool->pages().free() == Pages{6});
  CHECK(pool->pages().largest_extent() == Pages{6});
  CHECK(store.ledger().resident == Bytes{4 * kPage});
  CHECK(store.load(std::vector{fits.tensor()}));
}

TEST_CASE("segments whose digests collide are told apart by their bytes") {
  const auto pool = pool_of(64);
  SegmentStore store(*pool, [](std::span<const std::byte>) { return Digest{}; });
  const Bytes8 one("one", kPage, 1);
  const Bytes8 two("two", kPage, 2);
  const Bytes8 longer("longer", 2 * kPage, 1);
  const auto first = store.load(std::vector{one.tensor(), two.tensor()});
  const auto second = store.load(std::vector{two.tensor(), longer.tensor(), one.tensor()});
  REQUIRE(first);
  REQUIRE(second);
  for (const Bytes8* expected : {&one, &two, &longer}) CHECK(holds(*second, *expected));
  CHECK(store.ledger().segments == 3);
}

TEST_CASE("a slot that is missing is named") {
  const SlotTable empty;
  const auto missing = empty.lookup()("model.norm.weight");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().context.find("model.norm.weight") != std::string::npos);
}
