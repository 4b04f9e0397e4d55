// Pins: counted under the lock, let go of by whoever is last.
#include "gpu/residency/weights_shelf.hpp"

#include <string_view>
#include <utility>

namespace sangam {
namespace {

constexpr std::string_view kCard = "card/";
constexpr std::string_view kSegment = "segment/";

}  // namespace

BlobName card_name(const ModelId& model) {
  return BlobName(std::string(kCard) + model.text());
}

BlobName segment_name(const Digest& digest) {
  return BlobName(std::string(kSegment) + hex_of(digest));
}

class WeightsShelf::Pin {
 public:
  /// Under the lock.
  Pin(std::shared_ptr<State> state, const Digest& digest) : state_(std::move(state)), digest_(digest) {
    ++state_->segments.at(digest_).readers;
    ++state_->readers;
  }
  ~Pin() {
    const std::lock_guard lock(state_->mutex);
    --state_->segments.at(digest_).readers;
    if (--state_->readers == 0) state_->read_no_longer.notify_all();
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

 private:
  std::shared_ptr<State> state_;
  Digest digest_;
};

WeightsShelf::WeightsShelf(PagePool& pool) : arena_(pool.arena()), can_offer_(pool.device().host_access()) {}

WeightsShelf::~WeightsShelf() {
  std::unique_lock lock(state_->mutex);
  state_->read_no_longer.wait(lock, [&] { return state_->readers == 0; });
  state_->segments.clear();
}

void WeightsShelf::offer(const ModelId& model, std::string card, const SlotTable& table) {
  withdraw(model);
  if (!can_offer_) return;
  std::vector<Digest>& digests = offered_[model];
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, slot] : table.slots()) {
    Held& held = state_->segments[slot.segment->digest()];
    if (!held.segment) held.segment = slot.segment;
    ++held.models;
    digests.push_back(slot.segment->digest());
  }
  state_->cards[model] = std::make_shared<const std::string>(std::move(card));
}

void WeightsShelf::withdraw(const ModelId& model) {
  const auto offered = offered_.find(model);
  if (offered == offered_.end()) return;
  {
    const std::lock_guard lock(state_->mutex);
    for (const Digest& digest : offered->second) --state_->segments.at(digest).models;
    state_->cards.erase(model);
  }
  offered_.erase(offered);
  let_go();
}

bool WeightsShelf::let_go() const {
  const std::lock_guard lock(state_->mutex);
  bool all = true;
  std::erase_if(state_->segments, [&](const auto& entry) {
    const Held& held = entry.second;
    if (held.models == 0 && held.readers > 0) all = false;
    return held.models == 0 && held.readers == 0;
  });
  return all;
}

Result<Blob> WeightsShelf::find(const BlobName& name) {
  const std::string_view text = name.text();
  const std::lock_guard lock(state_->mutex);
  if (text.starts_with(kCard)) {
    const auto card = state_->cards.find(ModelId(std::string(text.substr(kCard.size()))));
    if (card != state_->cards.end()) {
      const auto bytes = std::as_bytes(std::span(std::string_view(*card->second)));
      return Blob{{bytes}, digest_of(bytes).bytes, card->second};
    }
  } else if (text.starts_with(kSegment)) {
    const auto digest = digest_from_hex(text.substr(kSegment.size()));
    const auto held = digest ? state_->segments.find(*digest) : state_->segments.end();
    if (held != state_->segments.end() && held->second.models > 0) {
      Blob blob{{}, digest->bytes, std::make_shared<const Pin>(state_, *digest)};
      for (const std::span<std::byte> piece : pieces_of(held->second.segment->place(), arena_)) blob.pieces.push_back(piece);
      return blob;
    }
  }
  return make_error(ErrorCode::not_found, "no " + name.text() + " is active here");
}

}  // namespace sangam
