// Pages change hands between the free ones, a sequence and the prefix cache here, and only here.
#include "gpu/engine/kv_pages.hpp"

#include <algorithm>

#include "messages/vocabulary/assert.hpp"

namespace sangam {

KvPages::~KvPages() {
  SANGAM_ASSERT(own_ == Pages{0}, own_);
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
  if (!realm.model.empty()) hold.shared = prefixes_.open(realm);
}

void KvPages::take(KvHold& hold, std::int64_t count) {
  if (const Pages missing = Pages(count) - pages_.free(); missing > Pages{0})
    (void)prefixes_.reclaim(missing);
  for (; count > 0; --count) {
    const auto page = pages_.take_lowest();
    SANGAM_ASSERT(page.has_value(), count, total());
    hold.pages.push_back(*page);
    own_ += Pages{1};
  }
}

void KvPages::publish(KvHold& hold, std::span<const TokenId> computed) {
  if (hold.shared.end == nullptr) return;
  const auto per_page = std::size_t(hold.shared.tokens_per_page);
  for (auto full = std::size_t(hold.shared.length); (full + 1) * per_page <= computed.size(); ++full) {
    PageId& page = hold.pages[full];
    const PageId in_use = prefixes_.keep(hold.shared, computed.subspan(full * per_page, per_page), page);
    if (in_use != page) pages_.give_back({std::exchange(page, in_use), Pages{1}});
    own_ -= Pages{1};
  }
}

void KvPages::let_go(KvHold& hold) {
  for (auto page = hold.pages.begin() + hold.shared.length; page != hold.pages.end(); ++page) {
    pages_.give_back({*page, Pages{1}});
    own_ -= Pages{1};
  }
  hold.pages.clear();
  prefixes_.close(hold.shared);
}

}  // namespace sangam
