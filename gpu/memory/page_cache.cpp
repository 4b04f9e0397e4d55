// Watermarks that follow the demand, and the trimming above them.
#include "gpu/memory/page_cache.hpp"

#include <algorithm>
#include <functional>

namespace sangam {

PageCache::PageCache(PagePool& pool, const ModelId& model) : pool_(pool), owner_(pool.owner_of(model)) {
  pool_.enlist(*this, owner_);
}

PageCache::~PageCache() {
  pool_.dismiss(*this);
  reclaim(spare());
}

std::optional<PageId> PageCache::take() {
  drawn_most_ = std::max(drawn_most_, ++drawn_);
  if (spare_.empty()) return pool_.take(owner_);
  const PageId page = spare_.back();
  spare_.pop_back();
  pool_.change(page, owner_, PageUse::kv);
  return page;
}

void PageCache::give_back(PageId page) {
  --drawn_;
  pool_.set_aside(page, owner_);
  spare_.push_back(page);
}

void PageCache::tend() {
  // Demand rises at once and is forgotten slowly: an eighth, at least a page, a tend.
  low_ = std::max({drawn_most_, low_ - std::max<std::int64_t>(1, low_ / 8), std::int64_t{0}});
  drawn_ = drawn_most_ = 0;
  while (spare() < Pages(low_)) {
    const auto page = pool_.take(owner_, PageUse::cached);
    if (!page) return;
    spare_.push_back(*page);
  }
  if (spare() > Pages(2 * low_)) reclaim(spare() - Pages(2 * low_));
}

Pages PageCache::reclaim(Pages wanted) {
  const Pages given = std::min(wanted, spare());
  const auto kept = spare_.begin() + (spare() - given).count();
  std::nth_element(spare_.begin(), kept, spare_.end());  // the highest numbers go: KV stays at the low end
  for (auto page = kept; page != spare_.end(); ++page) pool_.give_back(*page, owner_);
  spare_.erase(kept, spare_.end());
  return given;
}

}  // namespace sangam
