// What a peer has sent here and actors have not yet let go of: the basis of its credit.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "messages/mesh/node_parts.hpp"

namespace sangam::mesh {

/// One per peer, over all its lanes, so that a peer that comes back gets no second window for letters that
/// are still here. Letters may outlive the node; the tab lives as long as they do.
class Tab {
 public:
  Tab(Bytes window, std::shared_ptr<Wake> wake, std::shared_ptr<Tally> tally)
      : window_(window.count()), wake_(std::move(wake)), tally_(std::move(tally)) {}

  void add(std::int64_t bytes) {
    unconsumed_ += bytes;
    tally_->unconsumed_bytes += std::uint64_t(bytes);
  }
  /// Any thread. Wakes the node when the peer may be waiting for what came free.
  void release(std::int64_t bytes) {
    unconsumed_ -= bytes;
    tally_->unconsumed_bytes -= std::uint64_t(bytes);
    if (freed_.fetch_add(bytes) + bytes >= window_ / 4) wake_->ring();
  }
  /// How much the peer may send beyond what it has sent.
  [[nodiscard]] std::int64_t room() const { return std::max<std::int64_t>(0, window_ - unconsumed_); }
  /// Whether enough came free since the last call to be worth a frame.
  [[nodiscard]] bool worth_telling() {
    if (freed_ < window_ / 4) return false;
    freed_ = 0;
    return true;
  }

 private:
  const std::int64_t window_;
  std::atomic<std::int64_t> unconsumed_{0};
  std::atomic<std::int64_t> freed_{0};
  std::shared_ptr<Wake> wake_;
  std::shared_ptr<Tally> tally_;
};

/// The letter as actors hold it: with the last pointer to it, its bytes come off the tab.
struct Parcel {
  Parcel(EnvelopePtr letter_in, std::shared_ptr<Tab> tab_in, std::int64_t bytes_in)
      : letter(std::move(letter_in)), tab(std::move(tab_in)), bytes(bytes_in) {
    tab->add(bytes);
  }
  ~Parcel() { tab->release(bytes); }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

  EnvelopePtr letter;
  std::shared_ptr<Tab> tab;
  std::int64_t bytes;
};

[[nodiscard]] inline EnvelopePtr on_tab(EnvelopePtr letter, std::shared_ptr<Tab> tab, std::int64_t bytes) {
  auto parcel = std::make_shared<Parcel>(std::move(letter), std::move(tab), bytes);
  return EnvelopePtr(parcel, parcel->letter.get());
}

}  // namespace sangam::mesh
