// The prefix cache alone, against a naive model of it.
#include "gpu/engine/prefix_cache.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace sangam;

namespace {

constexpr std::int64_t kPerPage = 2;
using Words = std::vector<TokenId>;  // from the first token to a page's last

Digest strong(std::span<const std::byte> bytes) {
  return digest_of(bytes);
}

/// Three values for everything.
Digest weak(std::span<const std::byte> bytes) {
  return Digest{{std::uint8_t(digest_of(bytes).bytes[0] % 3)}};
}

/// The same promises by brute force: every page under all its tokens, with the moment when it became idle.
class NaiveCache {
 public:
  struct Kept {
    PageId page{};
    std::int64_t users = 0;
    std::uint64_t idle_since = 0;
  };

  [[nodiscard]] std::vector<PageId> found(const Words& tokens) const {
    std::vector<PageId> pages;
    for (std::size_t length = kPerPage; length <= tokens.size(); length += kPerPage) {
      const auto kept = kept_.find(Words(tokens.begin(), tokens.begin() + std::ptrdiff_t(length)));
      if (kept == kept_.end()) break;
      pages.push_back(kept->second.page);
    }
    return pages;
  }

  void use(const Words& tokens) {
    for (std::size_t length = kPerPage; length <= tokens.size(); length += kPerPage)
      ++at(tokens, length).users;
  }

  void leave(const Words& tokens) {
    for (std::size_t length = tokens.size() / kPerPage * kPerPage; length > 0; length -= kPerPage) {
      Kept& kept = at(tokens, length);
      if (--kept.users == 0) kept.idle_since = ++clock_;
    }
  }

  [[nodiscard]] PageId keep(const Words& tokens, PageId page) {
    return kept_.try_emplace(tokens, Kept{page, 0, 0}).first->second.page;
  }

  /// The page whose last use is the longest ago; nothing may continue it.
  void give_up() {
    auto oldest = kept_.end();
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (kept->second.users > 0) continue;
      if (oldest == kept_.end() || kept->second.idle_since < oldest->second.idle_since) oldest = kept;
    }
    for (const auto& [tokens, kept] : kept_) {
      const bool behind = tokens.size() > oldest->first.size() &&
                          std::equal(oldest->first.begin(), oldest->first.end(), tokens.begin());
      REQUIRE_FALSE(behind);
    }
    kept_.erase(oldest);
  }

  [[nodiscard]] std::int64_t idle() const {
    return std::count_if(kept_.begin(), kept_.end(), [](const auto& kept) { return kept.second.users == 0; });
  }
  [[nodiscard]] std::int64_t size() const { return std::int64_t(kept_.size()); }

 private:
  Kept& at(const Words& tokens, std::size_t length) {
    return kept_.at(Words(tokens.begin(), tokens.begin() + std::ptrdiff_t(length)));
  }

  std::map<Words, Kept> kept_;
  std::uint64_t clock_ = 0;
};

struct Reader {
  PrefixCache::Chain chain;
  Words tokens;  // whole pages that it uses
};

/// One sequence comes: uses what is there and adds one page behind it, perhaps.
Reader arrive(PrefixCache& cache, NaiveCache& naive, FreePages& pages, const Words& wanted) {
  Reader reader{cache.open({"weights", "tenant", kPerPage}), {}};
  std::vector<PageId> found;
  cache.follow(reader.chain, wanted, found);
  REQUIRE(found == naive.found(wanted));
  auto used = std::ptrdiff_t(found.size()) * kPerPage;
  reader.tokens.assign(wanted.begin(), wanted.begin() + used);
  naive.use(reader.tokens);
  if (const auto page = pages.take_lowest(); page && std::size_t(used + kPerPage) <= wanted.size()) {
    const Words more(wanted.begin(), wanted.begin() + used + kPerPage);
    const PageId in_use = cache.keep(reader.chain, std::span(more).last(kPerPage), *page);
    REQUIRE(in_use == naive.keep(more, *page));
    naive.leave(reader.tokens);
    reader.tokens = more;
    naive.use(more);
  } else if (page) {
    pages.give_back({*page, Pages{1}});
  }
  return reader;
}

void random_use(const PrefixCache::Hash& hash, std::uint64_t seed) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  FreePages pages(Pages{40});
  {
    PrefixCache cache(pages, hash);
    NaiveCache naive;
    std::vector<Reader> readers;
    for (int turn = 0; turn < 4000; ++turn) {
      if (random() % 2 == 0 && readers.size() < 12) {
        Words wanted(random() % 14);
        for (TokenId& token : wanted) token = TokenId(random() % 2);
        readers.push_back(arrive(cache, naive, pages, wanted));
      } else if (!readers.empty()) {
        const std::size_t leaver = random() % readers.size();
        cache.close(readers[leaver].chain);
        naive.leave(readers[leaver].tokens);
        readers.erase(readers.begin() + std::ptrdiff_t(leaver));
      }
      if (random() % 8 == 0 && cache.reclaimable() > Pages{0}) {
        naive.give_up();
        REQUIRE(cache.reclaim(Pages{1}) == Pages{1});
      }
      REQUIRE(cache.reclaimable().count() == naive.idle());
      REQUIRE(cache.held().count() == naive.size());
      REQUIRE(pages.free() + cache.held() == pages.total());
    }
    for (Reader& reader : readers) cache.close(reader.chain);
  }
  CHECK(pages.free() == pages.total());
}

}  // namespace

TEST_CASE("any use finds what a naive cache finds, and gives up the same pages, whatever the hash") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    random_use(strong, seed);
    random_use(weak, seed);
  }
}

TEST_CASE("a page that two have computed is kept once") {
  FreePages pages(Pages{4});
  PrefixCache cache(pages, strong);
  const Words tokens{7, 8};
  PrefixCache::Chain first = cache.open({"weights", "", kPerPage});
  PrefixCache::Chain second = cache.open({"weights", "", kPerPage});
  const PageId page = pages.take_lowest().value();
  const PageId twin = pages.take_lowest().value();
  CHECK(cache.keep(first, tokens, page) == page);
  CHECK(cache.keep(second, tokens, twin) == page);
  CHECK(cache.held() == Pages{1});
  pages.give_back({twin, Pages{1}});
  cache.close(first);
  CHECK(cache.reclaimable() == Pages{0});
  CHECK(cache.reclaim(Pages{9}) == Pages{0});
  cache.close(second);
  CHECK(cache.reclaim(Pages{9}) == Pages{1});
  CHECK(pages.free() == Pages{4});
}

TEST_CASE("realms share nothing, even under one hash for everything") {
  FreePages pages(Pages{8});
  PrefixCache cache(pages, [](std::span<const std::byte>) { return Digest{}; });
  const Words tokens{7, 8};
  const std::vector<PrefixRealm> realms{
      {"weights", "a", 2}, {"weights", "b", 2}, {"weights", "", 2}, {"others", "a", 2}};
  for (const PrefixRealm& realm : realms) {
    CAPTURE(realm.model + " " + realm.salt);
    std::vector<PageId> found;
    PrefixCache::Chain chain = cache.open(realm);
    cache.follow(chain, tokens, found);
    CHECK(found.empty());
    const PageId page = pages.take_lowest().value();
    CHECK(cache.keep(chain, tokens, page) == page);
    cache.close(chain);
  }
  for (std::uint32_t i = 0; i < realms.size(); ++i) {
    std::vector<PageId> found;
    PrefixCache::Chain chain = cache.open(realms[i]);
    cache.follow(chain, tokens, found);
    CHECK(found == std::vector{PageId{i}});
    cache.close(chain);
  }
}
