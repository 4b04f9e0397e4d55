// Random operations on a pool, its page caches, what gives way, and its segments, each compared with the
// naive model; calls to the device and hashes fail now and then. The unit test and the benchmark share it.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/memory/page_cache.hpp"
#include "tests/unit/gpu_memory/naive_memory.hpp"
#include "tests/unit/gpu_memory/test_devices.hpp"
#include "tests/unit/gpu_memory/weights.hpp"

namespace sangam::testing {

struct RandomRunOptions {
  std::uint64_t seed = 1;
  std::int64_t pages = 256;
  std::int64_t page_bytes = 4096;
  std::size_t models = 3;
  bool poison = true;
  int check_all_every = 512;           ///< Operations between two comparisons of every page.
  std::int64_t weight_pages_max = 8;   ///< Of one weight; a load has three on average.
  std::uint64_t loads_one_among = 16;  ///< Operations; loads and unloads.
};

class RandomRun {
 public:
  explicit RandomRun(RandomRunOptions options)
      : options_(options),
        random_(options.seed),
        pool_(std::make_unique<FaultyDevice>(
                  CpuDevice::create({Bytes{options.pages * options.page_bytes}, Bytes{options.page_bytes}})
                      .value(),
                  fault_),
              {idle_first, options.poison}),
        store_(pool_, [this](std::span<const std::byte> bytes) { return hash(bytes); }),
        naive_(options.pages, options.models),
        tables_(8) {
    for (std::size_t m = 0; m < options.models; ++m) models_.push_back(std::make_unique<Model>(pool_, m));
    for (std::size_t w = 0; w < 40; ++w)
      weights_.emplace_back(std::to_string(w),
                            64 + random_() % std::size_t(options.page_bytes * options.weight_pages_max), w);
  }

  /// One operation; false: the two disagree, and `why` says in what.
  bool step() {
    ++steps_;
    if (random_() % options_.loads_one_among == 0) return (random_() % 2 == 0 ? load() : unload()) && agree();
    const auto m = std::size_t(random_() % options_.models);
    switch (random_() % 32) {
      case 0: return tend(m) && agree();
      case 1: return shelve(m) && agree();
      case 2: return unshelve(m) && agree();
      case 3: return reserve() && agree();
      case 4: return end_reservation() && agree();
      default: return (random_() % 100 < tide() ? take(m) : give_back(m)) && agree();
    }
  }

  /// Ends everything that is held; true: all pages are free again.
  bool finish() {
    for (std::size_t m = 0; m < options_.models; ++m) {
      while (!naive_.models[m].kv.empty()) {
        if (!give_back(m)) return false;
      }
      shelves(m).reclaim(Pages(options_.pages));
      naive_.models[m].shelf.clear();
    }
    tables_.clear();
    reservations_.clear();
    for (const auto& model : models_) model->cache.reclaim(Pages(options_.pages));
    why = "pages that never came back";
    return pool_.ledger().free == Pages(options_.pages) &&
           pool_.pages().largest_extent() == Pages(options_.pages);
  }

  /// What neither KV nor weights can use now: the rest of pages that segments do not fill, and free pages
  /// that the largest load that is granted leaves. Makes all spare pages give way.
  [[nodiscard]] Bytes lost() {
    const SegmentLedger ledger = store_.ledger();
    Pages most = pool_.available();
    while (most > Pages{0} && !pool_.reserve_weights(most)) most -= Pages{1};
    return pool_.page_bytes() * (ledger.pages + pool_.available() - most).count() - ledger.resident;
  }
  [[nodiscard]] PagePool& pool() { return pool_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] int faults() const { return fault_.happened + bad_hashes_; }
  [[nodiscard]] std::int64_t scattered() const { return scattered_; }
  [[nodiscard]] std::int64_t loads() const { return loads_; }

  std::string why;

 private:
  class Shelf : public Reclaimable {
   public:
    Shelf(PagePool& pool, PageOwner owner) : pool_(pool), owner_(owner) { pool_.enlist(*this, owner); }
    ~Shelf() override { pool_.dismiss(*this); }
    Pages reclaimable() const override { return Pages(std::int64_t(pages.size())); }
    Pages reclaim(Pages wanted) override {
      Pages given;
      for (; given < wanted && !pages.empty(); given += Pages{1}) {
        pool_.give_back(pages.front(), owner_);
        pages.pop_front();
      }
      return given;
    }
    std::deque<PageId> pages;

   private:
    PagePool& pool_;
    PageOwner owner_;
  };
  struct Model {
    Model(PagePool& pool, std::size_t m)
        : cache(pool, ModelId(std::to_string(m))), shelf(pool, cache.owner()) {}
    PageCache cache;
    Shelf shelf;
    std::vector<PageId> live;
  };
  struct Table {
    SlotTable table;
    std::vector<std::size_t> weights;  ///< Empty: none is loaded here.
  };

  /// How many takes there are in a hundred takes and returns. Live pages swing between two fifths and nine
  /// tenths of the pool, so that by turns there is room and pages are short.
  std::uint64_t tide() const {
    const std::int64_t tenths = steps_ / std::uint64_t(64 * options_.pages) % 2 == 0 ? 9 : 4;
    std::int64_t live = 0;
    for (const auto& model : models_) live += std::int64_t(model->live.size());
    return 10 * live < tenths * options_.pages ? 60 : 40;
  }
  Shelf& shelves(std::size_t m) { return models_[m]->shelf; }

  Digest hash(std::span<const std::byte> bytes) {
    Digest digest = digest_of(bytes);
    if (bad_hash_in_.fetch_sub(1) == 0) {
      digest.bytes[0] ^= 1;
      ++bad_hashes_;
    }
    return digest;
  }

  /// Page `page` is marked as somebody's, so that a page that has two owners shows.
  void mark(PageId page) {
    const auto value = std::uint64_t(page) * 0x9E3779B97F4A7C15U + steps_;
    marks_[page] = value;
    std::memcpy(pool_.address_of(page), &value, sizeof value);
  }
  bool marked(PageId page) {
    why = "another has written to a live page";
    return std::memcmp(pool_.address_of(page), &marks_[page], sizeof(std::uint64_t)) == 0;
  }

  bool take(std::size_t m) {
    NaiveModel& naive = naive_.models[m];
    const std::int64_t expected = naive_.expected_take(m);
    const auto page = models_[m]->cache.take();
    why = "taken";
    if (expected == -2) return !page;
    if (!page || (expected >= 0 && std::int64_t(*page) != expected)) return false;
    if (expected == -1 ? naive.spare.erase(std::int64_t(*page)) != 1 : naive_.free.erase(expected) != 1)
      return false;
    naive.kv.insert(std::int64_t(*page));
    models_[m]->live.push_back(*page);
    mark(*page);
    return true;
  }

  bool give_back(std::size_t m) {
    auto& live = models_[m]->live;
    if (live.empty()) return true;
    std::swap(live[random_() % live.size()], live.back());
    const PageId page = live.back();
    live.pop_back();
    if (!marked(page)) return false;
    models_[m]->cache.give_back(page);
    NaiveModel& naive = naive_.models[m];
    --naive.drawn;
    naive.kv.erase(std::int64_t(page));
    naive.spare.insert(std::int64_t(page));
    return true;
  }

  bool tend(std::size_t m) {
    models_[m]->cache.tend();
    naive_.tend(m);
    why = "spare pages after a tend";
    return models_[m]->cache.spare() == Pages(std::int64_t(naive_.models[m].spare.size()));
  }

  /// A live request ends and leaves a page to the prefix cache.
  bool shelve(std::size_t m) {
    auto& live = models_[m]->live;
    if (live.empty()) return true;
    pool_.change(live.back(), models_[m]->cache.owner(), PageUse::cached);
    shelves(m).pages.push_back(live.back());
    naive_.models[m].shelf.push_back(std::int64_t(live.back()));
    naive_.models[m].kv.erase(std::int64_t(live.back()));
    live.pop_back();
    return true;
  }

  bool unshelve(std::size_t m) {
    auto& pages = shelves(m).pages;
    if (pages.empty()) return true;
    const PageId page = pages.back();
    if (!marked(page)) return false;
    pages.pop_back();
    pool_.change(page, models_[m]->cache.owner(), PageUse::kv);
    models_[m]->live.push_back(page);
    NaiveModel& naive = naive_.models[m];
    naive.shelf.pop_back();
    naive.kv.insert(std::int64_t(page));
    naive.last_used = ++naive_.uses;
    return true;
  }

  bool reserve() {
    const auto count = std::int64_t(1 + random_() % 12);
    const bool low = random_() % 2 == 0;
    const bool fits = naive_.make_free(count);
    const std::int64_t longest = naive_.longest();
    auto reservation = low ? pool_.reserve_kv(Pages{count}) : pool_.reserve_weights(Pages{count});
    why = "a reservation";
    if (reservation.has_value() != fits) return false;
    if (!fits) return true;
    if (reservation->pages() != Pages{count}) return false;
    if (!low && (reservation->extents().size() == 1) != (longest >= count)) return false;
    for (const std::int64_t page : numbers_of(reservation->extents())) {
      if (naive_.free.erase(page) != 1) return false;
      naive_.reserved.insert(page);
    }
    reservations_.push_back(std::move(*reservation));
    return true;
  }

  bool end_reservation() {
    if (reservations_.empty()) return true;
    std::swap(reservations_[random_() % reservations_.size()], reservations_.back());
    Reservation reservation = std::move(reservations_.back());
    reservations_.pop_back();
    const auto m = std::size_t(random_() % options_.models);
    const bool keep = random_() % 2 == 0;
    for (const std::int64_t page : numbers_of(reservation.extents())) {
      naive_.reserved.erase(page);
      (keep ? naive_.models[m].kv : naive_.free).insert(page);
    }
    if (!keep) return true;
    for (const PageId page : std::move(reservation).commit_kv(models_[m]->cache.owner())) {
      models_[m]->live.push_back(page);
      mark(page);
    }
    return true;
  }

  bool load() {
    std::size_t place = 0;
    while (place < tables_.size() && !tables_[place].weights.empty()) ++place;
    if (place == tables_.size()) return unload();
    std::vector<std::size_t> chosen;
    for (std::size_t w = 0; w < weights_.size(); ++w) {
      if (random_() % 12 == 0) chosen.push_back(w);
    }
    std::set<std::size_t> there;
    for (const Table& table : tables_) there.insert(table.weights.begin(), table.weights.end());
    std::int64_t end = 0;
    std::vector<const Weight*> wanted;
    for (const std::size_t w : chosen) {
      wanted.push_back(&weights_[w]);
      if (there.count(w) == 0) end = (end + 63) / 64 * 64 + std::int64_t(weights_[w].bytes.size());
    }
    if (random_() % 3 == 0) fault_.good_calls = int(random_() % 3);
    // After the hashes of the sources: one of the copies does not match.
    if (random_() % 3 == 0) bad_hash_in_ = int(chosen.size() + random_() % 4);
    const bool fits = naive_.make_free((end + options_.page_bytes - 1) / options_.page_bytes);
    const int faults_before = faults();
    auto loaded = store_.load(tensors_of(wanted));
    fault_.good_calls = -1;
    bad_hash_in_ = -1;
    ++loads_;
    why = "a load";
    if (!loaded) return !fits || faults() > faults_before;
    if (!fits) return false;
    tables_[place] = {std::move(*loaded), std::move(chosen)};
    return hold(tables_[place]);
  }

  /// The table is right, and its pages were free before or are held by others too.
  bool hold(const Table& table) {
    why = "a table's pages or bytes";
    for (const auto& [name, slot] : table.table.slots()) {
      if (!weights_[std::stoul(name)].is(slot.segment->bytes())) return false;
      const auto others = slot.segment.use_count() - 1;
      scattered_ += slot.segment->place().pages.size() > 1;
      for (const std::int64_t page : numbers_of(slot.segment->place().pages)) {
        if (others > 0) continue;  // counted when it came
        if (naive_.weights.count(page) == 0 && naive_.free.erase(page) != 1) return false;
        ++naive_.weights[page];
      }
    }
    return true;
  }

  bool unload() {
    Table& table = tables_[random_() % tables_.size()];
    for (const auto& [name, slot] : table.table.slots()) {
      if (slot.segment.use_count() > 1) continue;
      for (const std::int64_t page : numbers_of(slot.segment->place().pages)) {
        if (--naive_.weights[page] > 0) continue;
        naive_.weights.erase(page);
        naive_.free.insert(page);
      }
    }
    table = {};
    return true;
  }

  static std::vector<std::int64_t> numbers_of(std::span<const PageExtent> extents) {
    std::vector<std::int64_t> numbers;
    for (const PageExtent& extent : extents) {
      for (std::int64_t i = 0; i < extent.count.count(); ++i)
        numbers.push_back(std::int64_t(extent.first) + i);
    }
    return numbers;
  }

  bool agree() {
    if (pool_.pages().free() != Pages(std::int64_t(naive_.free.size()))) {
      why += ": free pages " + std::to_string(pool_.pages().free().count()) + ", not " +
             std::to_string(naive_.free.size());
      return false;
    }
    return steps_ % std::uint64_t(options_.check_all_every) != 0 || agree_in_all();
  }

  bool agree_in_all() {
    PoolLedger expected{Bytes(options_.page_bytes),
                        Pages(options_.pages),
                        Pages(std::int64_t(naive_.free.size())),
                        Pages(std::int64_t(naive_.reserved.size())),
                        Pages(std::int64_t(naive_.weights.size())),
                        {}};
    for (std::size_t m = 0; m < options_.models; ++m) {
      const NaiveModel& naive = naive_.models[m];
      expected.models[ModelId(std::to_string(m))] = {
          Pages(std::int64_t(naive.kv.size())), Pages(std::int64_t(naive.spare.size() + naive.shelf.size()))};
    }
    why += ": the ledger";
    if (pool_.ledger() != expected) return false;
    why = "the state of a page";
    for (std::int64_t page = 0; page < options_.pages; ++page) {
      const PageState state = pool_.state(PageId(page));
      const auto holders = naive_.weights.find(page);
      if (state.use != naive_use(page, state.owner)) return false;
      if (state.use == PageUse::weights && std::int64_t(state.holders) != holders->second) return false;
      if (pool_.pages().is_free(PageId(page)) != (state.use == PageUse::free)) return false;
    }
    return true;
  }

  PageUse naive_use(std::int64_t page, PageOwner owner) const {
    if (naive_.free.count(page) > 0) return PageUse::free;
    if (naive_.reserved.count(page) > 0) return PageUse::reserved;
    if (naive_.weights.count(page) > 0) return PageUse::weights;
    for (std::size_t m = 0; m < options_.models; ++m) {
      if (models_[m]->cache.owner() == owner && naive_.models[m].kv.count(page) > 0) return PageUse::kv;
    }
    return PageUse::cached;
  }

  RandomRunOptions options_;
  std::mt19937_64 random_;
  Fault fault_;
  std::atomic<int> bad_hash_in_ = -1;
  std::atomic<int> bad_hashes_ = 0;
  PagePool pool_;
  SegmentStore store_;
  NaiveMemory naive_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<Weight> weights_;
  std::vector<Table> tables_;
  std::vector<Reservation> reservations_;
  std::map<PageId, std::uint64_t> marks_;
  std::uint64_t steps_ = 0;
  std::int64_t scattered_ = 0;
  std::int64_t loads_ = 0;
};

}  // namespace sangam::testing
