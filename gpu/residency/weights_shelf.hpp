// What a worker offers to workers on other hosts: cards of its active models, and their segments where they lie.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gpu/memory/slot_table.hpp"
#include "messages/vocabulary/blob.hpp"

namespace sangam {

/// What the blobs of a worker are called.
[[nodiscard]] BlobName card_name(const ModelId& model);
[[nodiscard]] BlobName segment_name(const Digest& digest);

/// A segment that somebody reads stays in its pages until the reading ends, also when its model has gone meanwhile.
/// `find` is called by the channel's thread and pins end on any thread; everything else is the pool's thread's.
class WeightsShelf final : public BlobShelf {
 public:
  /// Only memory that the host can read is offered.
  explicit WeightsShelf(PagePool& pool);
  /// The channel has been told to withdraw; waits until nobody reads any more.
  ~WeightsShelf() override;
  WeightsShelf(const WeightsShelf&) = delete;
  WeightsShelf& operator=(const WeightsShelf&) = delete;

  void offer(const ModelId& model, std::string card, const SlotTable& table);
  /// What is being read of it stays.
  void withdraw(const ModelId& model);
  /// Lets go of what has been withdrawn and is read no longer. True when nothing of that kind is left.
  bool let_go() const;

  [[nodiscard]] Result<Blob> find(const BlobName& name) override;

 private:
  struct Held {
    std::shared_ptr<const Segment> segment;
    int models = 0;   ///< That are offered and have it.
    int readers = 0;  ///< Pins.
  };
  /// Outlives the shelf where a pin does.
  struct State {
    std::mutex mutex;
    std::condition_variable read_no_longer;
    std::map<Digest, Held> segments;
    std::map<ModelId, std::shared_ptr<const std::string>> cards;
    int readers = 0;  ///< Of segments, altogether.
  };
  class Pin;

  PageArena arena_;
  bool can_offer_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::map<ModelId, std::vector<Digest>> offered_;
};

}  // namespace sangam
