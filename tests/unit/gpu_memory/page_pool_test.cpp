// Who uses which page: the ledger, reservations, pages that give way, and mistakes that end the process.
#include "gpu/memory/page_pool.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "gpu/memory/page_cache.hpp"
#include "tests/unit/gpu_memory/test_devices.hpp"

using namespace sangam;
using sangam::testing::dies;

namespace {

constexpr std::int64_t kPage = 4096;
const ModelId kA("a");
const ModelId kB("b");

std::unique_ptr<PagePool> pool_of(std::int64_t pages) {
  return PagePool::create({Bytes{pages * kPage}, Bytes{kPage}}, {idle_first, true}).value();
}

/// Gives back its pages in the order in which it got them.
class Shelf : public Reclaimable {
 public:
  Shelf(PagePool& pool, const ModelId& model) : pool_(pool), owner_(pool.owner_of(model)) {
    pool_.enlist(*this, owner_);
  }
  ~Shelf() override {
    pool_.dismiss(*this);
    reclaim(reclaimable());
  }
  void put(PageId page) {
    pool_.change(page, owner_, PageUse::cached);
    pages_.push_back(page);
  }
  Pages reclaimable() const override { return Pages(std::int64_t(pages_.size())); }
  Pages reclaim(Pages wanted) override {
    const Pages given = std::min(wanted, reclaimable());
    for (std::int64_t i = 0; i < given.count(); ++i) pool_.give_back(pages_[std::size_t(i)], owner_);
    pages_.erase(pages_.begin(), pages_.begin() + given.count());
    return given;
  }

 private:
  PagePool& pool_;
  PageOwner owner_;
  std::vector<PageId> pages_;
};

PageId number(int page) {
  return PageId(std::uint32_t(page));
}

}  // namespace

TEST_CASE("the ledger counts every page once, by use and by model") {
  const auto pool = pool_of(10);
  const PageOwner a = pool->owner_of(kA);
  const PageOwner b = pool->owner_of(kB);
  CHECK(pool->owner_of(kA) == a);
  REQUIRE(a != b);
  const PageId first = *pool->take(a);
  const PageId second = *pool->take(b);
  CHECK(first == number(0));
  CHECK(second == number(1));
  pool->change(second, b, PageUse::cached);
  const auto reservation = pool->reserve_kv(Pages{2}).value();
  const auto weights = pool->reserve_weights(Pages{3}).value().pages();
  CHECK(weights == Pages{3});  // and given back: the reservation has ended
  CHECK(pool->ledger() == PoolLedger{Bytes{kPage},
                                     Pages{10},
                                     Pages{6},
                                     Pages{2},
                                     Pages{0},
                                     {{kA, {Pages{1}, Pages{0}}}, {kB, {Pages{0}, Pages{1}}}}});
  CHECK(pool->state(second).use == PageUse::cached);
  CHECK(pool->state(number(2)).use == PageUse::reserved);
  pool->give_back(first, a);
  pool->give_back(second, b);
  CHECK(pool->ledger().free == Pages{8});
}

TEST_CASE("a reservation that is not committed leaves nothing behind") {
  const auto pool = pool_of(10);
  const PoolLedger before = pool->ledger();
  {
    Reservation moved;
    {
      auto reservation = pool->reserve_weights(Pages{4}).value();
      CHECK(reservation.extents()[0] == PageExtent{number(6), Pages{4}});
      moved = std::move(reservation);
    }
    CHECK(pool->ledger().reserved == Pages{4});
  }
  CHECK(pool->ledger() == before);

  const PageOwner a = pool->owner_of(kA);
  const auto pages = std::move(pool->reserve_kv(Pages{3}).value()).commit_kv(a);
  CHECK(pages == std::vector{number(0), number(1), number(2)});
  CHECK(pool->ledger().models.at(kA).kv == Pages{3});
  for (const PageId page : pages) pool->give_back(page, a);
  CHECK(pool->ledger().free == Pages{10});
}

TEST_CASE("weights are held by count and free with their last holder") {
  const auto pool = pool_of(10);
  const auto extents = std::move(pool->reserve_weights(Pages{3}).value()).commit_weights();
  REQUIRE(extents == std::vector<PageExtent>{{number(7), Pages{3}}});
  pool->hold_weights({number(8), Pages{1}});
  pool->drop_weights(extents[0]);
  CHECK(pool->ledger().weights == Pages{1});
  CHECK(pool->state(number(8)).holders == 1);
  pool->drop_weights({number(8), Pages{1}});
  CHECK(pool->ledger().free == Pages{10});
}

TEST_CASE("weights take the highest pages where no piece is long enough, in ascending order") {
  const auto pool = pool_of(6);
  const PageOwner a = pool->owner_of(kA);
  std::vector<PageId> pages;
  for (int i = 0; i < 6; ++i) pages.push_back(*pool->take(a));
  for (const int free : {0, 2, 4, 5}) pool->give_back(number(free), a);
  const auto three = pool->reserve_weights(Pages{3}).value();
  CHECK(std::vector(three.extents().begin(), three.extents().end()) ==
        std::vector<PageExtent>{{number(2), Pages{1}}, {number(4), Pages{2}}});
  const auto refused = pool->reserve_weights(Pages{2});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::exhausted);
  CHECK(refused.error().context.find("needed=2, free=1 and 0 that would give way, of 6") !=
        std::string::npos);
}

TEST_CASE("pages of an earlier life are reserved by number, all or none") {
  const auto pool = pool_of(10);
  const std::vector<PageExtent> wanted{{number(8), Pages{2}}, {number(3), Pages{1}}};
  {
    const auto reservation = pool->reserve_exactly(wanted).value();
    CHECK(reservation.pages() == Pages{3});
    CHECK_FALSE(pool->reserve_exactly(std::vector<PageExtent>{{number(5), Pages{1}}, {number(9), Pages{1}}}));
    CHECK(pool->ledger().free == Pages{7});
  }
  CHECK_FALSE(pool->reserve_exactly(std::vector<PageExtent>{{number(8), Pages{3}}}));
  CHECK(pool->ledger().free == Pages{10});
}

TEST_CASE("models without live requests give way first, then the least recently used") {
  CHECK(idle_first(
            std::vector<ReclaimCandidate>{{Pages{1}, false, 1}, {Pages{1}, true, 9}, {Pages{1}, true, 3}}) ==
        std::vector<std::size_t>{2, 1, 0});

  const auto pool = pool_of(6);
  const PageOwner a = pool->owner_of(kA);
  const PageOwner b = pool->owner_of(kB);
  Shelf shelf_a(*pool, kA);
  Shelf shelf_b(*pool, kB);
  const PageId live = *pool->take(a);  // a has a live request, and is the least recently used
  shelf_a.put(*pool->take(a));
  for (int i = 0; i < 2; ++i) shelf_b.put(*pool->take(b));
  const PageId rest[] = {*pool->take(a), *pool->take(a)};
  CHECK(pool->ledger().free == Pages{0});
  CHECK(pool->available() == Pages{3});

  CHECK(pool->take(a) == number(2));  // b's: idle, though used later
  CHECK(pool->take(b) == number(3));
  CHECK(pool->take(b) == number(1));  // now a's own shelf is all that is left
  CHECK_FALSE(pool->take(b).has_value());
  CHECK(pool->state(live).use == PageUse::kv);
  for (const PageId page : {live, rest[0], rest[1], number(2)}) pool->give_back(page, a);
  for (const PageId page : {number(1), number(3)}) pool->give_back(page, b);
}

TEST_CASE("weights and reservations make others give way, but only when that is enough") {
  const auto pool = pool_of(6);
  const PageOwner a = pool->owner_of(kA);
  Shelf shelf(*pool, kA);
  const PageId live = *pool->take(a);
  for (int i = 0; i < 5; ++i) shelf.put(*pool->take(a));
  CHECK_FALSE(pool->reserve_weights(Pages{6}));
  CHECK(shelf.reclaimable() == Pages{5});
  CHECK(pool->reserve_kv(Pages{2}).value().pages() == Pages{2});
  CHECK(pool->reserve_weights(Pages{5}).value().pages() == Pages{5});
  CHECK(shelf.reclaimable() == Pages{0});
  pool->give_back(live, a);
}

TEST_CASE("what breaks the rules of ownership ends the process") {
  const auto pool = pool_of(6);
  const PageOwner a = pool->owner_of(kA);
  const PageOwner b = pool->owner_of(kB);
  const PageId page = *pool->take(a);
  CHECK(dies([&] { pool->give_back(page, b); }));
  CHECK(dies([&] { pool->change(page, b, PageUse::cached); }));
  CHECK(dies([&] { pool->give_back(number(99), a); }));
  CHECK(dies([&] { pool->hold_weights({page, Pages{1}}); }));
  CHECK(dies([&] { pool->drop_weights({page, Pages{1}}); }));
  CHECK_FALSE(dies([&] { pool->give_back(page, a); }));
  pool->give_back(page, a);
  CHECK(dies([&] { pool->give_back(page, a); }));
}

TEST_CASE("who writes to a page that is free is found out, and who reads it finds no number") {
  const auto pool = pool_of(2);
  const PageOwner a = pool->owner_of(kA);
  const PageId page = *pool->take(a);
  pool->give_back(page, a);
  float read = 0;
  std::memcpy(&read, pool->address_of(page) + 100, sizeof read);
  CHECK(read != read);
  CHECK_FALSE(dies([&] { (void)pool->take(a); }));
  pool->address_of(page)[kPage - 1] = std::byte{0};
  CHECK(dies([&] { (void)pool->take(a); }));
  pool->address_of(page)[kPage - 1] = std::byte{0xFF};
}

TEST_CASE("a cache keeps what its model takes between two tends, and forgets at rest") {
  const auto pool = pool_of(100);
  PageCache cache(*pool, kA);
  cache.tend();
  CHECK(cache.spare() == Pages{0});
  std::vector<PageId> pages;
  for (int i = 0; i < 8; ++i) pages.push_back(*cache.take());
  cache.tend();
  CHECK(cache.spare() == Pages{8});
  for (int i = 0; i < 8; ++i) pages.push_back(*cache.take());
  CHECK(cache.spare() == Pages{0});
  for (const PageId page : pages) cache.give_back(page);
  CHECK(cache.spare() == Pages{16});
  CHECK(pool->ledger().models.at(kA) == ModelPages{Pages{0}, Pages{16}});
  for (int i = 0; i < 40; ++i) cache.tend();
  CHECK(cache.spare() == Pages{0});
  CHECK(pool->ledger().free == Pages{100});
}

TEST_CASE("a cache that is far above its mark gives the surplus back, and the highest pages of it") {
  const auto pool = pool_of(100);
  PageCache cache(*pool, kA);
  std::vector<PageId> pages;
  for (int i = 0; i < 40; ++i) pages.push_back(*cache.take());
  for (int i = 0; i < 30; ++i) cache.tend();
  for (const PageId page : pages) cache.give_back(page);
  CHECK(cache.spare() >= Pages{40});
  cache.tend();
  cache.tend();
  CHECK(cache.spare() == Pages{0});

  pages.clear();
  for (int i = 0; i < 3; ++i) pages.push_back(*cache.take());
  cache.tend();
  for (const PageId page : pages) cache.give_back(page);  // 0 to 2 and 3 to 5: twice the mark, so they stay
  cache.tend();
  CHECK(cache.spare() == Pages{4});  // the mark has sunk to 2
  for (int page = 0; page < 4; ++page) CHECK(pool->state(number(page)).use == PageUse::cached);
}

TEST_CASE("spare pages come from idle models, never from one at work, and never from live requests") {
  const auto pool = pool_of(10);
  PageCache cache_a(*pool, kA);
  PageCache cache_b(*pool, kB);
  const PageId page_a = *cache_a.take();
  std::vector<PageId> pages_b;
  for (int i = 0; i < 6; ++i) pages_b.push_back(*cache_b.take());
  while (pages_b.size() > 1) {
    cache_b.give_back(pages_b.back());
    pages_b.pop_back();
  }
  std::vector<PageId> pages_a{page_a};
  for (int i = 0; i < 3; ++i) pages_a.push_back(*cache_a.take());
  CHECK(pool->ledger().free == Pages{0});
  cache_a.tend();
  CHECK(cache_a.spare() == Pages{0});  // b is at work
  cache_b.give_back(pages_b[0]);
  cache_a.tend();
  CHECK(cache_a.spare() == Pages{3});  // of 4 drawn, one tend later
  CHECK(cache_b.spare() == Pages{3});
  for (int i = 0; i < 6; ++i) pages_a.push_back(*cache_a.take());  // live requests: anyone's spare pages
  CHECK(cache_b.spare() == Pages{0});
  CHECK_FALSE(cache_a.take().has_value());
  for (const PageId page : pages_a) cache_a.give_back(page);
}

TEST_CASE("a model that goes to sleep while its cache is full leaves no page and no number behind") {
  const auto pool = pool_of(20);
  for (int life = 0; life < 3; ++life) {
    PageCache cache(*pool, kA);
    std::vector<bool> seen(20);
    std::vector<PageId> pages;
    for (int i = 0; i < 5; ++i) pages.push_back(*cache.take());
    cache.tend();
    while (const auto page = cache.take()) pages.push_back(*page);
    for (const PageId page : pages) {
      CHECK_FALSE(seen[std::size_t(page)]);
      seen[std::size_t(page)] = true;
      cache.give_back(page);
    }
    CHECK(pages.size() == 20);
  }
  CHECK(pool->ledger().free == Pages{20});
}
