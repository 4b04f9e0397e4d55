// What one reader has asked for and how far it has got it; decides what leaves next, and touches no socket.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "messages/vocabulary/blob.hpp"
#include "messages/vocabulary/time.hpp"
#include "messages/wire/bulk_frame.hpp"

namespace sangam::mesh {

class BulkSession {
 public:
  BulkSession(NodeName reader, Bytes part_max, Instant now)
      : reader_(std::move(reader)), part_max_(std::size_t(part_max.count())), heard_(now) {}

  [[nodiscard]] const NodeName& reader() const { return reader_; }
  void heard(Instant now) { heard_ = now; }
  /// It has something to read and has said nothing for this long.
  [[nodiscard]] bool is_stalled(Instant now, Millis most) const { return (blob_ || !asks_.empty()) && now - heard_ > most; }

  /// `exhausted` beyond kBlobAsksMax, `corrupt` where the number does not follow.
  Result<void> ask(wire::BulkAsk ask);
  void credit(std::uint64_t parts) { granted_ = std::max(granted_, parts); }

  /// The ask whose blob must be found, or refused, before anything can leave.
  [[nodiscard]] const wire::BulkAsk* undecided() const { return blob_ || asks_.empty() ? nullptr : &asks_.front(); }
  void begin(Blob blob);
  /// The answer to the undecided ask.
  [[nodiscard]] wire::BulkRefused refuse(const Error& error);
  [[nodiscard]] bool reads_from(const ActorName& owner) const { return blob_ && asks_.front().owner == owner; }

  struct Part {
    wire::BulkPart head;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> pin;
  };
  [[nodiscard]] bool can_send() const { return blob_ && sent_ < granted_; }
  /// The next bytes, never across two pieces. The pin of a blob that is complete stays with its parts only.
  [[nodiscard]] Part next_part();

 private:
  NodeName reader_;
  std::size_t part_max_;
  Instant heard_;
  std::deque<wire::BulkAsk> asks_;  // The first is the blob's, where there is one.
  std::uint64_t asked_ = 0;
  std::optional<Blob> blob_;
  Bytes size_{0}, done_{0};
  std::size_t piece_ = 0, offset_ = 0;  // Where the next part begins.
  std::uint64_t sent_ = 0, granted_ = 0;
};

}  // namespace sangam::mesh
