// Packing of the word, and who has which place.
#include "actors/worker/kv_progress.hpp"

#include <algorithm>
#include <atomic>

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

using Word = std::uint64_t;
static_assert(std::atomic_ref<Word>::is_always_lock_free, "others read it in another process");

constexpr int kTokenBits = 24;
constexpr int kLayerBits = 16;
constexpr std::size_t kPlaceBytes = 64;

Word clamped(std::int64_t value, int bits) {
  return Word(std::clamp<std::int64_t>(value, 0, (std::int64_t{1} << bits) - 1));
}

std::int64_t field(Word word, int from, int bits) {
  return std::int64_t((word >> from) & ((Word{1} << bits) - 1));
}

}  // namespace

void store_progress(std::byte* at, const KvProgress& progress) {
  const Word word = clamped(progress.done, kTokenBits) | clamped(progress.chunk, kTokenBits) << kTokenBits |
                    clamped(progress.layers, kLayerBits) << 2 * kTokenBits;
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(at)).store(word, std::memory_order_release);
}

KvProgress load_progress(const std::byte* at) {
  // A load of a word does not write, so the page may be mapped for reading only.
  Word& place = *reinterpret_cast<Word*>(const_cast<std::byte*>(at));
  const Word word = std::atomic_ref<Word>(place).load(std::memory_order_acquire);
  return {field(word, 0, kTokenBits), field(word, kTokenBits, kTokenBits), field(word, 2 * kTokenBits, kLayerBits)};
}

ProgressBoard::~ProgressBoard() {
  for (const auto& [model, board] : boards_) pool_.give_back(board.page, pool_.owner_of(model));
}

std::optional<ProgressBoard::Place> ProgressBoard::take(const ModelId& model) {
  auto found = boards_.find(model);
  if (found == boards_.end()) {
    const auto page = pool_.take(pool_.owner_of(model));
    if (!page) return std::nullopt;
    const std::size_t places = std::size_t(pool_.page_bytes().count()) / kPlaceBytes;
    found = boards_.emplace(model, Board{*page, std::vector<bool>(places)}).first;
  }
  Board& board = found->second;
  const auto free = std::find(board.used.begin(), board.used.end(), false);
  if (free == board.used.end()) return std::nullopt;
  *free = true;
  const Place place{board.page, Bytes((free - board.used.begin()) * std::int64_t(kPlaceBytes))};
  store_progress(at(place), {});
  return place;
}

void ProgressBoard::give_back(const ModelId& model, const Place& place) {
  Board& board = boards_.at(model);
  const auto used = board.used.begin() + place.offset.count() / std::int64_t(kPlaceBytes);
  SANGAM_ASSERT(*used, "given back twice", place.offset);
  *used = false;
  if (std::find(board.used.begin(), board.used.end(), true) != board.used.end()) return;
  pool_.give_back(board.page, pool_.owner_of(model));
  boards_.erase(model);
}

}  // namespace sangam
