// How far a prompt has been computed, said without a message: a word in a page, which the worker that computes stores
// and the others on its host read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gpu/memory/page_pool.hpp"

namespace sangam {

/// One 64-bit word; from its low end 24 bits `done`, 24 bits `chunk`, 16 bits `layers`. What does not fit is said as the
/// most that does, which is true, too.
struct KvProgress {
  std::int64_t done = 0;    ///< Positions that are final in all layers.
  std::int64_t chunk = 0;   ///< Positions behind them,
  std::int64_t layers = 0;  ///< which are final in the first so many layers.

  bool operator==(const KvProgress&) const = default;
};

/// Release: whoever reads it sees the keys and values that it speaks of. `at`: aligned to its size.
void store_progress(std::byte* at, const KvProgress& progress);
/// Acquire. Says anything at all where the page serves something else by now.
[[nodiscard]] KvProgress load_progress(const std::byte* at);

/// Where the words lie: a page for each model that has prompts on their way, in places of one cache line each.
class ProgressBoard {
 public:
  struct Place {
    PageId page{};
    Bytes offset{};
  };

  /// `pool` outlives it.
  explicit ProgressBoard(PagePool& pool) : pool_(pool) {}
  ~ProgressBoard();
  ProgressBoard(const ProgressBoard&) = delete;
  ProgressBoard& operator=(const ProgressBoard&) = delete;

  /// A word that says nothing yet; none where the pool has no page, or the page no place.
  [[nodiscard]] std::optional<Place> take(const ModelId& model);
  /// The last one gives the page back.
  void give_back(const ModelId& model, const Place& place);
  [[nodiscard]] std::byte* at(const Place& place) const {
    return pool_.address_of(place.page) + place.offset.count();
  }

 private:
  struct Board {
    PageId page{};
    std::vector<bool> used;
  };

  PagePool& pool_;
  std::map<ModelId, Board> boards_;
};

}  // namespace sangam
