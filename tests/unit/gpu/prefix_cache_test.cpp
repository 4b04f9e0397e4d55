// The prefix cache alone, against a naive model of it.
#include "gpu/engine/prefix_cache.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace sangam;

namespace {

constexpr std::int64_t kPerPage = 2;
const ModelId kModel("model");
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

std::unique_ptr<PagePool> pool_of(std::int64_t pages) {
  return PagePool::create({Bytes{pages * 4096}, Bytes{4096}}).value();
}

/// Weights that come and go take so many pages away.
void reclaim(PagePool& pool, Pages pages) { REQUIRE(pool.reserve_weights(pool.pages().free() + pages)); }

/// One sequence comes: uses what is there and adds one page behind it, perhaps.
Reader arrive(PrefixCache& cache, NaiveCache& naive, PagePool& pool, const Words& wanted) {
  const PageOwner owner = pool.owner_of(kModel);
  Reader reader{cache.open({"weights", "tenant", kPerPage}, owner), {}};
  std::vector<PageId> found;
  cache.follow(reader.chain, wanted, found);
  REQUIRE(found == naive.found(wanted));
  auto used = std::ptrdiff_t(found.size()) * kPerPage;
  reader.tokens.assign(wanted.begin(), wanted.begin() + used);
  naive.use(reader.tokens);
  if (pool.pages().free() == Pages{0} || std::size_t(used + kPerPage) > wanted.size()) return reader;
  if (const auto page = pool.take(owner)) {
    const Words more(wanted.begin(), wanted.begin() + used + kPerPage);
    const PageId in_use = cache.keep(reader.chain, std::span(more).last(kPerPage), *page);
    REQUIRE(in_use == naive.keep(more, *page));
    naive.leave(reader.tokens);
    reader.tokens = more;
    naive.use(more);
  }
  return reader;
}

void random_use(const PrefixCache::Hash& hash, std::uint64_t seed) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const auto pool = pool_of(40);
  (void)pool->owner_of(kModel);
  {
    PrefixCache cache(*pool, hash);
    NaiveCache naive;
    std::vector<Reader> readers;
    for (int turn = 0; turn < 4000; ++turn) {
      if (random() % 2 == 0 && readers.size() < 12) {
        Words wanted(random() % 14);
        for (TokenId& token : wanted) token = TokenId(random() % 2);
        readers.push_back(arrive(cache, naive, *pool, wanted));
      } else if (!readers.empty()) {
        const std::size_t leaver = random() % readers.size();
        cache.close(readers[leaver].chain);
        naive.leave(readers[leaver].tokens);
        readers.erase(readers.begin() + std::ptrdiff_t(leaver));
      }
      if (random() % 8 == 0 && cache.idle("weights") > Pages{0}) {
        naive.give_up();
        reclaim(*pool, Pages{1});
      }
      REQUIRE(cache.idle("weights").count() == naive.idle());
      REQUIRE(cache.held().count() == naive.size());
      REQUIRE(pool->pages().free() + cache.held() == pool->pages().total());
      const ModelPages counted = pool->ledger().models.at(kModel);
      REQUIRE(counted == ModelPages{cache.held() - cache.idle("weights"), cache.idle("weights")});
    }
    for (Reader& reader : readers) cache.close(reader.chain);
  }
  CHECK(pool->pages().free() == pool->pages().total());
}

}  // namespace

TEST_CASE("any use finds what a naive cache finds, and gives up the same pages, whatever the hash") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    random_use(strong, seed);
    random_use(weak, seed);
  }
}

TEST_CASE("a page that two have computed is kept once") {
  const auto pool = pool_of(4);
  const PageOwner owner = pool->owner_of(kModel);
  PrefixCache cache(*pool, strong);
  const Words tokens{7, 8};
  PrefixCache::Chain first = cache.open({"weights", "", kPerPage}, owner);
  PrefixCache::Chain second = cache.open({"weights", "", kPerPage}, owner);
  const PageId page = pool->take(owner).value();
  const PageId twin = pool->take(owner).value();
  CHECK(cache.keep(first, tokens, page) == page);
  CHECK(cache.keep(second, tokens, twin) == page);
  CHECK(cache.held() == Pages{1});
  pool->give_back(twin, owner);
  cache.close(first);
  CHECK(cache.idle("weights") == Pages{0});
  CHECK_FALSE(pool->reserve_weights(Pages{4}));
  CHECK(pool->ledger().models.at(kModel) == ModelPages{Pages{1}, Pages{0}});
  cache.close(second);
  CHECK(pool->ledger().models.at(kModel) == ModelPages{Pages{0}, Pages{1}});
  CHECK(pool->reserve_weights(Pages{4}));
  CHECK(pool->pages().free() == Pages{4});
}

TEST_CASE("realms share nothing, even under one hash for everything") {
  const auto pool = pool_of(8);
  const PageOwner owner = pool->owner_of(kModel);
  PrefixCache cache(*pool, [](std::span<const std::byte>) { return Digest{}; });
  const Words tokens{7, 8};
  const std::vector<PrefixRealm> realms{
      {"weights", "a", 2}, {"weights", "b", 2}, {"weights", "", 2}, {"others", "a", 2}};
  for (const PrefixRealm& realm : realms) {
    CAPTURE(realm.model + " " + realm.salt);
    std::vector<PageId> found;
    PrefixCache::Chain chain = cache.open(realm, owner);
    cache.follow(chain, tokens, found);
    CHECK(found.empty());
    const PageId page = pool->take(owner).value();
    CHECK(cache.keep(chain, tokens, page) == page);
    cache.close(chain);
  }
  for (std::uint32_t i = 0; i < realms.size(); ++i) {
    std::vector<PageId> found;
    PrefixCache::Chain chain = cache.open(realms[i], owner);
    cache.follow(chain, tokens, found);
    CHECK(found == std::vector{PageId{i}});
    cache.close(chain);
  }
}

TEST_CASE("what idles of a model at rest gives way before that of one with live requests") {
  const auto pool = pool_of(6);
  const PageOwner busy = pool->owner_of(kModel), resting = pool->owner_of(ModelId("resting"));
  PrefixCache cache(*pool, strong);
  for (const auto& [name, owner] : {std::pair{"resting", resting}, std::pair{"busy", busy}}) {
    PrefixCache::Chain chain = cache.open({name, "", kPerPage}, owner);
    for (TokenId token = 0; token < 4; token += 2)
      (void)cache.keep(chain, Words{token, token + 1}, pool->take(owner).value());
    cache.close(chain);
  }
  const PageId live = pool->take(busy).value();
  const auto again = pool->take(resting);  // used last, but without live pages once it is given back
  pool->give_back(*again, resting);
  const Reservation first = pool->reserve_weights(Pages{3}).value();
  CHECK(cache.idle("resting") == Pages{0});
  CHECK(cache.idle("busy") == Pages{2});
  const Reservation second = pool->reserve_weights(Pages{2}).value();
  CHECK(cache.idle("busy") == Pages{0});
  CHECK_FALSE(pool->take(resting).has_value());  // what lives stays
  CHECK(pool->state(live).use == PageUse::kv);
  pool->give_back(live, busy);
}
