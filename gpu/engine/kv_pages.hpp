// The pages of keys and values of an engine: whose they are, and where the next ones come from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/engine/prefix_cache.hpp"

namespace sangam {

/// The pages of one sequence in the order of its tokens: first those that it shares through the prefix cache,
/// which nobody may write any more, then its own.
struct KvHold {
  std::vector<PageId> pages;
  PrefixCache::Chain shared;

  [[nodiscard]] std::int64_t own() const { return std::int64_t(pages.size()) - shared.length; }
};

/// What the prefix cache keeps gives way to whoever needs pages.
class KvPages {
 public:
  KvPages(FreePages& pages, PrefixCache::Hash hash) : pages_(pages), prefixes_(pages, std::move(hash)) {}
  /// Everything has been let go by then.
  ~KvPages();
  KvPages(const KvPages&) = delete;
  KvPages& operator=(const KvPages&) = delete;

  /// That `take` could have.
  [[nodiscard]] Pages available() const { return pages_.free() + prefixes_.reclaimable(); }
  [[nodiscard]] bool all_available() const { return available() == total(); }
  /// What weights have left, in use or not.
  [[nodiscard]] Pages total() const { return pages_.free() + prefixes_.held() + own_; }
  /// How many more were available if these let their pages go.
  [[nodiscard]] Pages available_without(std::span<const KvHold* const> leaving) const;

  /// Fills an empty `hold` with the pages that the cache has of `tokens`.
  void share(KvHold& hold, const PrefixRealm& realm, std::span<const TokenId> tokens);
  /// The pages of `hold`, all its own, may be published from now on.
  void enroll(KvHold& hold, const PrefixRealm& realm);
  /// So many must be available.
  void take(KvHold& hold, std::int64_t count);
  /// `computed`: tokens whose keys and values are in the pages. What fills whole pages is shared from now on.
  /// An equal page that is there already takes the place of the sequence's own.
  void publish(KvHold& hold, std::span<const TokenId> computed);
  void let_go(KvHold& hold);

  /// What idles in the prefix cache.
  [[nodiscard]] Reclaimable& spare() { return prefixes_; }

 private:
  FreePages& pages_;
  PrefixCache prefixes_;
  Pages own_;  ///< Of all holds together.
};

}  // namespace sangam
