// The memory of one device, divided into pages that the KV and the weights of several models share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/device/device.hpp"
#include "gpu/memory/free_pages.hpp"
#include "gpu/memory/page_state.hpp"
#include "gpu/memory/reclaim.hpp"
#include "gpu/memory/reservation.hpp"
#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

struct PagePoolOptions {
  Bytes size{};            ///< Rounded down to whole pages.
  Bytes page{256 * 1024};  ///< A multiple of the machine's own page.
};

struct PagePoolRules {
  ReclaimPolicy reclaim = idle_first;
  /// Free and spare pages are filled with ones (which are no numbers in any float format), and looked through
  /// when they are taken: whoever reads or writes a page that is not its own is found out. Needs a device whose
  /// memory the host can reach.
  bool poison = false;
};

/// Knows what every page is used for and by whom; a page that is given back twice or by a stranger ends the
/// process. Whoever takes pages gives them back before the pool ends. One thread at a time.
class PagePool {
 public:
  explicit PagePool(std::unique_ptr<Device> device, PagePoolRules rules = {});
  /// On a CPU device of its own.
  static Result<std::unique_ptr<PagePool>> create(PagePoolOptions options, PagePoolRules rules = {});
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  /// The same for every call with this name.
  [[nodiscard]] PageOwner owner_of(const ModelId& model);

  /// The lowest free page, for live requests (`kv`) or in advance (`cached`). When none is free, others give
  /// way: for `kv` anyone, for `cached` only other models without live requests.
  [[nodiscard]] std::optional<PageId> take(PageOwner owner, PageUse use = PageUse::kv);
  /// Between `kv` and `cached`: a live request begins or ceases to need it.
  void change(PageId page, PageOwner owner, PageUse to);
  /// As `change` to `cached`, of a page whose content nobody needs any more.
  void set_aside(PageId page, PageOwner owner);
  /// Takes no account of whether it is `kv` or `cached`.
  void give_back(PageId page, PageOwner owner);

  /// So many of the lowest pages, or an error and nothing has changed but that others gave way.
  Result<Reservation> reserve_kv(Pages count);
  /// One piece from the high end; where there is none long enough, the highest pages.
  Result<Reservation> reserve_weights(Pages count);
  /// Just these, as after a restart.
  Result<Reservation> reserve_exactly(std::span<const PageExtent> extents);

  /// Each page of weights is free when it has been dropped as often as it was held.
  void hold_weights(PageExtent extent);
  void drop_weights(PageExtent extent);

  /// From now on asked when pages are short, until it is dismissed.
  void enlist(Reclaimable& reclaimable, PageOwner owner);
  void dismiss(Reclaimable& reclaimable);
  /// Free or to be had by `take` or `reserve_*`.
  [[nodiscard]] Pages available() const;
  /// In use or not, that neither are weights nor reserved.
  [[nodiscard]] Pages beside_weights() const { return free_.total() - weights_ - reserved_; }

  [[nodiscard]] PoolLedger ledger() const;
  [[nodiscard]] PageState state(PageId page) const { return states_[std::size_t(page)]; }

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] PageArena arena() const { return arena_; }
  [[nodiscard]] Bytes page_bytes() const { return Bytes(std::int64_t(arena_.page_bytes)); }
  [[nodiscard]] Pages pages_for(Bytes bytes) const {
    return Pages((bytes.count() + page_bytes().count() - 1) / page_bytes().count());
  }
  [[nodiscard]] std::byte* address_of(PageId page) const { return arena_.at(page); }

  [[nodiscard]] const FreePages& pages() const { return free_; }

 private:
  friend class Reservation;
  struct Owner {
    ModelId model;
    ModelPages pages;
    std::uint64_t last_used = 0;
  };
  struct Enlisted {
    Reclaimable* reclaimable = nullptr;
    PageOwner owner{};
  };

  /// Counts and state of a page that leaves one use for another.
  void move(PageId page, PageUse to, PageOwner owner);
  void move(std::span<const PageExtent> extents, PageUse to, PageOwner owner);
  void release(std::span<const PageExtent> extents);
  [[nodiscard]] Pages& count_of(PageUse use, PageOwner owner);
  void check_owned(PageId page, PageOwner owner) const;
  void poison(PageId page);
  void check_poison(PageId page) const;

  /// Asks all who give way for a use by `owner`, until so many pages have come.
  void reclaim(Pages wanted, PageOwner owner, PageUse use);
  Result<void> make_free(Pages count, const char* what);

  std::unique_ptr<Device> device_;
  PageArena arena_;
  PagePoolRules rules_;
  FreePages free_;
  std::vector<PageState> states_;  ///< One a page.
  std::vector<Owner> owners_;      ///< By number; [0] is nobody.
  std::unordered_map<ModelId, PageOwner> owner_by_model_;
  std::vector<Enlisted> enlisted_;
  Pages reserved_;
  Pages weights_;
  std::uint64_t takes_ = 0;
};

}  // namespace sangam
