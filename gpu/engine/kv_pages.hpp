// The pages of keys and values of an engine: whose they are, and where the next ones come from.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/engine/prefix_cache.hpp"
#include "gpu/memory/page_cache.hpp"

namespace sangam {

/// The pages of one sequence in the order of its tokens: first those that it shares through the prefix cache,
/// which nobody may write any more, then its own.
struct KvHold {
  PageCache* cache = nullptr;  ///< Of its model: where its own pages come from and go to.
  std::vector<PageId> pages = {};
  PrefixCache::Chain shared = {};

  [[nodiscard]] std::int64_t own() const { return std::int64_t(pages.size()) - shared.length; }
};

/// Each model takes pages from a cache of its own, which is filled between steps. What the prefix cache keeps, and
/// what others have to spare, gives way to whoever needs pages.
class KvPages {
 public:
  KvPages(PagePool& pool, PrefixCache::Hash hash) : pool_(pool), prefixes_(pool, std::move(hash)) {}
  KvPages(const KvPages&) = delete;
  KvPages& operator=(const KvPages&) = delete;

  /// From now on there are holds of this model; it must not be served yet.
  void serve(const ModelId& model);
  /// There are none any more. What the prefix cache keeps of it stays there.
  void forget(const ModelId& model) { caches_.erase(model); }
  /// An empty one, of a model that is served.
  [[nodiscard]] KvHold hold(const ModelId& model) { return {&caches_.at(model)}; }

  /// That `take` could have.
  [[nodiscard]] Pages available() const { return pool_.available(); }
  [[nodiscard]] bool all_available() const { return available() == total(); }
  /// What weights have left, in use or not.
  [[nodiscard]] Pages total() const { return pool_.beside_weights(); }
  /// How many more were available if these let their pages go.
  [[nodiscard]] Pages available_without(std::span<const KvHold* const> leaving) const;
  /// Idle in the prefix cache under this name.
  [[nodiscard]] Pages kept(const std::string& kv_name) const { return prefixes_.idle(kv_name); }

  /// Fills an empty `hold` with the pages that the cache has of `tokens`.
  void share(KvHold& hold, const PrefixRealm& realm, std::span<const TokenId> tokens);
  /// The pages of `hold`, all its own, may be published from now on.
  void enroll(KvHold& hold, const PrefixRealm& realm);
  /// So many must be available.
  void take(KvHold& hold, std::int64_t count);
  /// `computed`: tokens whose keys and values are in the pages. What fills whole pages is shared from now on.
  /// An equal page that is there already takes the place of the sequence's own.
  void publish(KvHold& hold, std::span<const TokenId> computed);
  /// It is empty then, and may be filled again.
  void let_go(KvHold& hold);

  /// Between steps: makes ready what the next ones will take.
  void tend();

 private:
  PagePool& pool_;
  std::map<ModelId, PageCache> caches_;
  PrefixCache prefixes_;
};

}  // namespace sangam
