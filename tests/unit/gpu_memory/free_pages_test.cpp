// The free map against a plain array of flags.
#include "gpu/memory/free_pages.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace sangam;

namespace {

/// The obvious way: one flag a page.
struct NaiveFreePages {
  explicit NaiveFreePages(std::size_t total) : free(total, true) {}

  std::int64_t lowest() const {
    for (std::size_t page = 0; page < free.size(); ++page) {
      if (free[page]) return std::int64_t(page);
    }
    return -1;
  }

  /// First page of the upper part of the smallest run that fits, the highest of equals; -1: none.
  std::int64_t best_fit(std::int64_t count) const {
    std::int64_t best_first = -1;
    std::int64_t best_length = 0;
    for (std::int64_t first = 0; first < std::int64_t(free.size());) {
      std::int64_t end = first;
      while (end < std::int64_t(free.size()) && free[std::size_t(end)]) ++end;
      const std::int64_t length = end - first;
      if (length >= count && (best_first < 0 || length <= best_length)) {
        best_first = end - count;
        best_length = length;
      }
      first = end + 1;
    }
    return best_first;
  }

  void set(std::int64_t first, std::int64_t count, bool value) {
    for (std::int64_t page = first; page < first + count; ++page) free[std::size_t(page)] = value;
  }

  std::vector<bool> free;
};

}  // namespace

TEST_CASE("single pages come from the low end, extents from the high end of the best fitting hole") {
  FreePages pages(Pages{10});
  CHECK(pages.take_lowest() == PageId{0});
  CHECK(pages.take_extent(Pages{3}) == PageExtent{PageId{7}, Pages{3}});
  CHECK(pages.take_lowest() == PageId{1});
  pages.give_back({PageId{7}, Pages{1}});
  pages.give_back({PageId{0}, Pages{1}});
  CHECK(pages.take_extent(Pages{1}) == PageExtent{PageId{0}, Pages{1}});
  CHECK(pages.take_extent(Pages{1}) == PageExtent{PageId{7}, Pages{1}});
  CHECK(pages.free() == Pages{5});
  CHECK(pages.largest_extent() == Pages{5});
}

TEST_CASE("what does not fit in one piece is refused, though enough pages are free") {
  FreePages pages(Pages{5});
  for (int i = 0; i < 5; ++i) CHECK(pages.take_lowest().has_value());
  CHECK_FALSE(pages.take_lowest().has_value());
  for (const std::uint32_t page : {0u, 2u, 4u}) pages.give_back({PageId{page}, Pages{1}});
  CHECK_FALSE(pages.take_extent(Pages{2}).has_value());
  CHECK(pages.free() == Pages{3});
  pages.give_back({PageId{3}, Pages{1}});
  CHECK(pages.take_extent(Pages{3}) == PageExtent{PageId{2}, Pages{3}});
}

TEST_CASE("the highest pages come in the order of their numbers, all or none") {
  FreePages pages(Pages{200});
  REQUIRE(pages.take({PageId{190}, Pages{5}}));
  REQUIRE(pages.take({PageId{63}, Pages{2}}));
  CHECK(pages.take_highest(Pages{130}) ==
        std::vector<PageExtent>{{PageId{65}, Pages{125}}, {PageId{195}, Pages{5}}});
  CHECK(pages.take_highest(Pages{64}).empty());
  CHECK(pages.free() == Pages{63});
  CHECK(pages.take_highest(Pages{63}) == std::vector<PageExtent>{{PageId{0}, Pages{63}}});
}

TEST_CASE("pages that are named are taken only if all of them are free") {
  FreePages pages(Pages{130});
  CHECK(pages.take({PageId{60}, Pages{70}}));
  CHECK_FALSE(pages.take({PageId{0}, Pages{61}}));
  CHECK_FALSE(pages.take({PageId{0}, Pages{131}}));
  CHECK(pages.free() == Pages{60});
  CHECK(pages.largest_extent() == Pages{60});
  CHECK(pages.take({PageId{0}, Pages{60}}));
  CHECK(pages.free() == Pages{0});
}

TEST_CASE("random takes and returns agree with one flag a page") {
  const std::uint64_t seed = 20240611;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (const std::int64_t total : {1, 7, 64, 200, 5000}) {
    FreePages pages(Pages{total});
    NaiveFreePages naive(static_cast<std::size_t>(total));
    std::vector<PageExtent> taken;
    bool equal = true;
    for (int event = 0; event < 250'000 / std::min<std::int64_t>(total, 200) && equal; ++event) {
      const auto kind = random() % 4;
      if (kind == 0) {
        const auto page = pages.take_lowest();
        equal = (page ? std::int64_t(*page) : -1) == naive.lowest();
        if (page) taken.push_back({*page, Pages{1}});
      } else if (kind == 1) {
        const auto count = std::int64_t(1 + random() % 9);
        const auto extent = pages.take_extent(Pages{count});
        equal = (extent ? std::int64_t(extent->first) : -1) == naive.best_fit(count);
        if (extent) taken.push_back(*extent);
      } else if (!taken.empty()) {
        std::swap(taken[random() % taken.size()], taken.back());
        pages.give_back(taken.back());
        naive.set(std::int64_t(taken.back().first), taken.back().count.count(), true);
        taken.pop_back();
        continue;
      }
      if (!taken.empty() && equal)
        naive.set(std::int64_t(taken.back().first), taken.back().count.count(), false);
    }
    CHECK(equal);
    for (const PageExtent& extent : taken) pages.give_back(extent);
    CHECK(pages.free() == Pages{total});
    CHECK(pages.largest_extent() == Pages{total});
  }
}
