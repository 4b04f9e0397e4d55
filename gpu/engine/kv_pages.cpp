// Pages change hands between a model's spare ones, a sequence and the prefix cache here, and only here.
#include "gpu/engine/kv_pages.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {

void KvPages::serve(const ModelId& model) {
  const bool is_new = caches_.try_emplace(model, pool_, model).second;
  SANGAM_ASSERT(is_new, "served twice", model);
}

Pages KvPages::available_without(std::span<const KvHold* const> leaving) const {
  Pages more = available();
  std::vector<const PrefixCache::Chain*> chains;
  for (const KvHold* hold : leaving) {
    more += Pages(hold->own());
    chains.push_back(&hold->shared);
  }
  return more + prefixes_.used_only_by(chains);
}

void KvPages::share(KvHold& hold, const PrefixRealm& realm, std::span<const TokenId> tokens) {
  SANGAM_ASSERT(hold.pages.empty() && hold.shared.end == nullptr, hold.pages.size());
  enroll(hold, realm);
  if (hold.shared.end != nullptr) prefixes_.follow(hold.shared, tokens, hold.pages);
}

void KvPages::enroll(KvHold& hold, const PrefixRealm& realm) {
  if (!realm.model.empty()) hold.shared = prefixes_.open(realm, hold.cache->owner());
}

void KvPages::take(KvHold& hold, std::int64_t count) {
  for (; count > 0; --count) {
    const auto page = hold.cache->take();
    SANGAM_ASSERT(page.has_value(), count, total());
    hold.pages.push_back(*page);
  }
}

void KvPages::publish(KvHold& hold, std::span<const TokenId> computed) {
  if (hold.shared.end == nullptr) return;
  const auto per_page = std::size_t(hold.shared.tokens_per_page);
  for (auto full = std::size_t(hold.shared.length); (full + 1) * per_page <= computed.size(); ++full) {
    PageId& page = hold.pages[full];
    const PageId in_use = prefixes_.keep(hold.shared, computed.subspan(full * per_page, per_page), page);
    if (in_use != page) hold.cache->give_back(std::exchange(page, in_use));
  }
}

void KvPages::let_go(KvHold& hold) {
  for (auto page = hold.pages.begin() + hold.shared.length; page != hold.pages.end(); ++page)
    hold.cache->give_back(*page);
  hold.pages.clear();
  prefixes_.close(hold.shared);
}

void KvPages::tend() {
  for (auto& [model, cache] : caches_) cache.tend();
}

}  // namespace sangam
