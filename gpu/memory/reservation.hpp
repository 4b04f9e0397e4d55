// Pages that an operation of several steps has been promised.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "gpu/device/device.hpp"
#include "gpu/memory/page_state.hpp"

namespace sangam {

class PagePool;

/// Gives the pages back when it ends, unless it was committed: a step that fails leaves the ledger as it was.
/// Ends on the thread of the pool.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), extents_(std::exchange(other.extents_, {})) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(extents_, other.extents_);
    return *this;
  }
  ~Reservation();

  /// In the order in which they are to be filled.
  [[nodiscard]] std::span<const PageExtent> extents() const { return extents_; }
  [[nodiscard]] Pages pages() const;

  /// The pages are from now on KV of this model.
  std::vector<PageId> commit_kv(PageOwner owner) &&;
  /// The pages are from now on weights, held once.
  std::vector<PageExtent> commit_weights() &&;

 private:
  friend class PagePool;
  Reservation(PagePool& pool, std::vector<PageExtent> extents) : pool_(&pool), extents_(std::move(extents)) {}

  PagePool* pool_ = nullptr;
  std::vector<PageExtent> extents_;
};

}  // namespace sangam
