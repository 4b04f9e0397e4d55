// One model's spare pages: what its next steps will take, made ready between steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/memory/page_pool.hpp"

namespace sangam {

/// A step takes from here without waiting for others to give way; `tend` keeps as many spare pages as the
/// model has lately taken between two tends, and at most twice as many. A model at rest loses its spare pages
/// tend by tend. They give way to whoever is short of pages.
class PageCache final : public Reclaimable {
 public:
  /// `pool` outlives the cache.
  PageCache(PagePool& pool, const ModelId& model);
  ~PageCache() override;
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  /// A spare page, else the pool's lowest. Never empty while `pool.available()` is more than 0.
  [[nodiscard]] std::optional<PageId> take();
  void give_back(PageId page);

  /// Between steps. Takes pages that are free or that models without live requests can spare; gives back the
  /// highest.
  void tend();

  [[nodiscard]] PageOwner owner() const { return owner_; }
  [[nodiscard]] Pages spare() const { return Pages(std::int64_t(spare_.size())); }
  [[nodiscard]] Pages reclaimable() const override { return spare(); }
  Pages reclaim(Pages wanted) override;

 private:
  PagePool& pool_;
  PageOwner owner_;
  std::vector<PageId> spare_;  ///< The last is taken next.
  std::int64_t drawn_ = 0;     ///< Pages taken less pages given back since the last tend.
  std::int64_t drawn_most_ = 0;
  std::int64_t low_ = 0;  ///< Spare pages that `tend` makes sure of.
};

}  // namespace sangam
