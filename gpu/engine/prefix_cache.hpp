// Whole pages of keys and values that outlive their sequences, found again by the tokens that they hold.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/memory/page_pool.hpp"
#include "messages/vocabulary/names.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {

/// Whose keys and values may stand for one another's. Realms share nothing.
struct PrefixRealm {
  std::string model;  ///< Names weights and configuration; empty: nothing of it is kept.
  std::string salt;   ///< Sequences of another salt cannot learn, by speed, what was asked here.
  std::int64_t tokens_per_page = 1;

  auto operator<=>(const PrefixRealm&) const = default;
};

/// A tree of pages for each realm: the way to a page spells all tokens from the first one to its last. An
/// entry is found by a hash of its parent's hash and its own tokens, and taken only if parent and tokens are
/// equal: a collision costs time, never correctness.
///
/// Pages stay their owner's: `kv` in the pool's ledger while a live sequence uses them, `cached` while none
/// does. These idle ones are given up when pages are short: the pool's policy says of which model, and of one
/// model those go first whose last use was earliest, always before the pages that they continue. The index
/// keeps the tokens of each page and some 200 bytes, so it is bounded by the pages of the pool.
class PrefixCache {
 public:
  using Hash = std::function<Digest(std::span<const std::byte>)>;

  /// `pool` outlives the cache.
  PrefixCache(PagePool& pool, Hash hash);
  /// All chains are closed by then.
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  struct Entry;
  /// The pages that one live sequence uses, from its first token on; they stay until the chain is closed.
  struct Chain {
    Entry* end = nullptr;     ///< Its last page, or the realm's root; null: closed.
    std::int64_t length = 0;  ///< Pages.
    std::int64_t tokens_per_page = 0;
  };

  /// `owner`: of the model. Models of one name give way as the one that came first.
  [[nodiscard]] Chain open(const PrefixRealm& realm, PageOwner owner);
  void close(Chain& chain);

  /// Goes on along the chain as far as whole pages of `tokens`, which begin behind its end, are there.
  void follow(Chain& chain, std::span<const TokenId> tokens, std::vector<PageId>& pages);
  /// Keeps `page`, a live page which holds `tokens` (a page full) behind the chain's end: it is the cache's from
  /// now on, whoever owns it.
  /// If such a page is there already, the chain uses that one and `page` stays the caller's. Returns the page
  /// in use.
  [[nodiscard]] PageId keep(Chain& chain, std::span<const TokenId> tokens, PageId page);

  /// Idle or not.
  [[nodiscard]] Pages held() const { return Pages(std::int64_t(entries_.size())); }
  /// Of all realms of this name.
  [[nodiscard]] Pages idle(const std::string& model) const;
  /// How many more were idle if these chains were closed.
  [[nodiscard]] Pages used_only_by(std::span<const Chain* const> chains) const;

 private:
  /// The idle pages of all realms of one name.
  struct Shelf final : Reclaimable {
    explicit Shelf(PrefixCache& of) : cache(of) {}
    [[nodiscard]] Pages reclaimable() const override { return Pages(std::int64_t(idle.size())); }
    Pages reclaim(Pages wanted) override;

    PrefixCache& cache;
    std::list<Entry*> idle;  ///< Least recently used first. Whoever uses a page uses its parents: they follow.
    std::int64_t roots = 0;  ///< Realms of this name.
  };

  [[nodiscard]] Digest name_behind(const Entry& parent, std::span<const TokenId> tokens) const;
  [[nodiscard]] Entry* find(const Entry& parent, const Digest& name, std::span<const TokenId> tokens) const;
  Shelf& shelf_of(const std::string& model, PageOwner owner);
  void use(Chain& chain, Entry& entry);
  void evict(Entry& entry);
  void drop_if_unused(Entry& root);

  PagePool& pool_;
  Hash hash_;
  std::map<std::string, Shelf> shelves_;  ///< By name; one that is empty stays until another comes.
  std::map<PrefixRealm, std::unique_ptr<Entry>> roots_;
  std::unordered_multimap<Digest, std::unique_ptr<Entry>> entries_;
};

}  // namespace sangam
