// Every change of a page's use goes through `move`, which keeps the ledger.
#include "gpu/memory/page_pool.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "gpu/device/cpu/cpu_device.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

constexpr std::byte kPoison{0xFF};

template <class Work>
void for_each_page(PageExtent extent, const Work& work) {
  const std::int64_t first = std::int64_t(extent.first);
  for (std::int64_t page = first; page < first + extent.count.count(); ++page) work(PageId(page));
}

bool is_models(PageUse use) {
  return use == PageUse::kv || use == PageUse::cached;
}

}  // namespace

Reservation::~Reservation() {
  if (pool_ != nullptr) pool_->release(extents_);
}

Pages Reservation::pages() const {
  Pages pages;
  for (const PageExtent& extent : extents_) pages += extent.count;
  return pages;
}

std::vector<PageId> Reservation::commit_kv(PageOwner owner) && {
  std::vector<PageId> pages;
  if (pool_ == nullptr) return pages;
  std::exchange(pool_, nullptr)->move(extents_, PageUse::kv, owner);
  for (const PageExtent& extent : extents_)
    for_each_page(extent, [&](PageId page) { pages.push_back(page); });
  return pages;
}

std::vector<PageExtent> Reservation::commit_weights() && {
  if (pool_ == nullptr) return {};
  PagePool& pool = *std::exchange(pool_, nullptr);
  pool.move(extents_, PageUse::weights, PageOwner::nobody);
  for (const PageExtent& extent : extents_) pool.hold_weights(extent);
  return std::move(extents_);
}

PagePool::PagePool(std::unique_ptr<Device> device, PagePoolRules rules)
    : device_(std::move(device)),
      arena_(device_->arena()),
      rules_(rules),
      free_(device_->pages()),
      states_(std::size_t(device_->pages().count())),
      owners_(1) {
  SANGAM_ASSERT(!rules_.poison || device_->host_access());
}

Result<std::unique_ptr<PagePool>> PagePool::create(PagePoolOptions options, PagePoolRules rules) {
  auto device = CpuDevice::create({options.size, options.page});
  if (!device) return device.error();
  return std::make_unique<PagePool>(std::move(*device), rules);
}

PageOwner PagePool::owner_of(const ModelId& model) {
  const auto [entry, is_new] = owner_by_model_.try_emplace(model, PageOwner(owners_.size()));
  if (is_new) {
    SANGAM_ASSERT(owners_.size() <= std::numeric_limits<std::uint16_t>::max(), "too many models",
                  owners_.size());
    owners_.push_back({model, {}, 0});
  }
  return entry->second;
}

std::optional<PageId> PagePool::take(PageOwner owner, PageUse use) {
  SANGAM_ASSERT(is_models(use) && owner != PageOwner::nobody, int(use));
  auto page = free_.take_lowest();
  if (!page) {
    reclaim(Pages{1}, owner, use);
    page = free_.take_lowest();
    if (!page) return std::nullopt;
  }
  owners_[std::size_t(owner)].last_used = ++takes_;
  move(*page, use, owner);
  return page;
}

void PagePool::change(PageId page, PageOwner owner, PageUse to) {
  check_owned(page, owner);
  SANGAM_ASSERT(is_models(to), int(to));
  if (to == PageUse::kv) owners_[std::size_t(owner)].last_used = ++takes_;
  move(page, to, owner);
}

void PagePool::set_aside(PageId page, PageOwner owner) {
  change(page, owner, PageUse::cached);
  if (rules_.poison) poison(page);
}

void PagePool::give_back(PageId page, PageOwner owner) {
  check_owned(page, owner);
  move(page, PageUse::free, PageOwner::nobody);
  free_.give_back({page, Pages{1}});
}

Result<Reservation> PagePool::reserve_kv(Pages count) {
  if (auto enough = make_free(count, "kv"); !enough) return enough.error();
  std::vector<PageExtent> extents;
  for (; count > Pages{0}; count -= Pages{1}) {
    const PageId page = *free_.take_lowest();
    if (!extents.empty() &&
        std::int64_t(extents.back().first) + extents.back().count.count() == std::int64_t(page)) {
      extents.back().count += Pages{1};
    } else {
      extents.push_back({page, Pages{1}});
    }
  }
  move(extents, PageUse::reserved, PageOwner::nobody);
  return Reservation(*this, std::move(extents));
}

Result<Reservation> PagePool::reserve_weights(Pages count) {
  if (count == Pages{0}) return Reservation();
  if (auto enough = make_free(count, "weights"); !enough) return enough.error();
  std::vector<PageExtent> extents;
  if (const auto extent = free_.take_extent(count)) {
    extents.push_back(*extent);
  } else {
    extents = free_.take_highest(count);
  }
  move(extents, PageUse::reserved, PageOwner::nobody);
  return Reservation(*this, std::move(extents));
}

Result<Reservation> PagePool::reserve_exactly(std::span<const PageExtent> extents) {
  Reservation reservation(*this, {});
  for (const PageExtent& extent : extents) {
    if (!free_.take(extent)) {
      return make_error(
          ErrorCode::exhausted,
          "page pool: of pages " + std::to_string(std::uint32_t(extent.first)) + " and the next " +
              std::to_string(extent.count.count() - 1) +
              ", some are taken or beyond the end; claim pages of an earlier life before taking any");
    }
    move({&extent, 1}, PageUse::reserved, PageOwner::nobody);
    reservation.extents_.push_back(extent);
  }
  return reservation;
}

void PagePool::hold_weights(PageExtent extent) {
  for_each_page(extent, [&](PageId page) {
    PageState& state = states_[std::size_t(page)];
    SANGAM_ASSERT(state.use == PageUse::weights, std::uint32_t(page), int(state.use));
    ++state.holders;
  });
}

void PagePool::drop_weights(PageExtent extent) {
  for_each_page(extent, [&](PageId page) {
    PageState& state = states_[std::size_t(page)];
    SANGAM_ASSERT(state.use == PageUse::weights && state.holders > 0, "dropped twice", std::uint32_t(page));
    if (--state.holders == 0) {
      const PageExtent one{page, Pages{1}};
      release({&one, 1});
    }
  });
}

void PagePool::enlist(Reclaimable& reclaimable, PageOwner owner) {
  enlisted_.push_back({&reclaimable, owner});
}

void PagePool::dismiss(Reclaimable& reclaimable) {
  std::erase_if(enlisted_, [&](const Enlisted& entry) { return entry.reclaimable == &reclaimable; });
}

Pages PagePool::available() const {
  Pages pages = free_.free();
  for (const Enlisted& entry : enlisted_) pages += entry.reclaimable->reclaimable();
  return pages;
}

PoolLedger PagePool::ledger() const {
  PoolLedger ledger{page_bytes(), free_.total(), free_.free(), reserved_, weights_, {}};
  for (std::size_t owner = 1; owner < owners_.size(); ++owner)
    ledger.models.emplace(owners_[owner].model, owners_[owner].pages);
  return ledger;
}

Pages& PagePool::count_of(PageUse use, PageOwner owner) {
  if (use == PageUse::reserved) return reserved_;
  if (use == PageUse::weights) return weights_;
  ModelPages& pages = owners_[std::size_t(owner)].pages;
  return use == PageUse::kv ? pages.kv : pages.cached;
}

void PagePool::move(PageId page, PageUse to, PageOwner owner) {
  PageState& state = states_[std::size_t(page)];
  const bool is_idle = to == PageUse::free || to == PageUse::cached;
  if (state.poisoned) check_poison(page);
  if (state.use != PageUse::free) count_of(state.use, state.owner) -= Pages{1};
  state = {to, state.poisoned && is_idle, owner, 0};
  if (to != PageUse::free) {
    count_of(to, owner) += Pages{1};
  } else if (rules_.poison && !state.poisoned) {
    poison(page);
  }
}

void PagePool::move(std::span<const PageExtent> extents, PageUse to, PageOwner owner) {
  for (const PageExtent& extent : extents) for_each_page(extent, [&](PageId page) { move(page, to, owner); });
}

void PagePool::release(std::span<const PageExtent> extents) {
  move(extents, PageUse::free, PageOwner::nobody);
  for (const PageExtent& extent : extents) free_.give_back(extent);
}

void PagePool::check_owned(PageId page, PageOwner owner) const {
  SANGAM_ASSERT(std::size_t(page) < states_.size(), "no such page", std::uint32_t(page));
  const PageState& state = states_[std::size_t(page)];
  SANGAM_ASSERT(is_models(state.use) && state.owner == owner, "page is not its owner's", std::uint32_t(page),
                int(state.use), int(state.owner), int(owner));
}

void PagePool::poison(PageId page) {
  std::memset(address_of(page), int(kPoison), arena_.page_bytes);
  states_[std::size_t(page)].poisoned = true;
}

void PagePool::check_poison(PageId page) const {
  const std::byte* bytes = address_of(page);
  // Equal to itself one byte further on, and the first is right: so all are.
  const bool whole = bytes[0] == kPoison && std::memcmp(bytes, bytes + 1, arena_.page_bytes - 1) == 0;
  SANGAM_ASSERT(whole, "a free or spare page was written to", std::uint32_t(page));
}

void PagePool::reclaim(Pages wanted, PageOwner owner, PageUse use) {
  std::vector<ReclaimCandidate> candidates;
  for (const Enlisted& entry : enlisted_) {
    const Owner& holder = owners_[std::size_t(entry.owner)];
    candidates.push_back({entry.reclaimable->reclaimable(), holder.pages.kv == Pages{0}, holder.last_used});
  }
  for (const std::size_t place : rules_.reclaim(candidates)) {
    if (wanted <= Pages{0}) return;
    const ReclaimCandidate& candidate = candidates[place];
    if (candidate.reclaimable == Pages{0}) continue;
    if (use == PageUse::cached && (!candidate.idle || enlisted_[place].owner == owner)) continue;
    const Pages before = free_.free();
    const Pages given = enlisted_[place].reclaimable->reclaim(wanted);
    SANGAM_ASSERT(free_.free() == before + given, "gave back other than it said", before, free_.free(),
                  given);
    wanted -= given;
  }
}

Result<void> PagePool::make_free(Pages count, const char* what) {
  const Pages free = free_.free();
  if (available() >= count) {
    if (count > free) reclaim(count - free, PageOwner::nobody, PageUse::kv);
    if (free_.free() >= count) return {};
  }
  return make_error(ErrorCode::exhausted,
                    std::string(what) + ": pages needed=" + std::to_string(count.count()) +
                        ", free=" + std::to_string(free.count()) + " and " +
                        std::to_string((available() - free_.free()).count()) + " that would give way, of " +
                        std::to_string(free_.total().count()) + ", page bytes=" +
                        std::to_string(page_bytes().count()) + "; unload a model or make the pool larger");
}

}  // namespace sangam
