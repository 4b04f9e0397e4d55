// A load under way: everything that it needs is reserved, the bytes come in pieces.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/memory/host_view.hpp"
#include "gpu/memory/slot_table.hpp"

namespace sangam {

/// Called from several threads at once.
using SegmentHash = std::function<Digest(std::span<const std::byte>)>;

/// Made and committed by the store, on the thread of the pool; copied from any one thread at a time. Dropped
/// before it is committed, on the thread of the pool, it gives everything back.
class SegmentLoad {
 public:
  /// What is not resident yet.
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] Bytes copied() const { return copied_; }
  [[nodiscard]] bool complete() const { return !failed_ && next_ == fresh_.size(); }

  /// Copies the next `most` bytes, at least one, and checks the hash of each segment that is there with them.
  /// After an error the load can only be dropped.
  Result<void> copy(Bytes most);

 private:
  friend class SegmentStore;
  /// Hashes what is stored while it is copied.
  struct Witness final : CopyWitness {
    void see(std::span<const std::byte> bytes) override { stream.update(bytes); }
    DigestStream stream;
  };
  /// A segment to be. Its pages are among the reserved ones.
  struct Fresh {
    Digest digest;
    std::span<const std::byte> source;
    std::int64_t offset = 0;  ///< In the reserved pages, one after the other.
    SegmentPlace place;
    std::span<const std::byte> bytes;
    std::unique_ptr<Witness> witness;  ///< From its first byte to its last.
  };
  struct Slot {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::shared_ptr<const Segment> resident;  ///< Or, if null:
    std::size_t fresh = 0;
  };

  /// `hash` null: digest_of.
  SegmentLoad(PagePool& pool, SegmentHash hash);
  Result<void> reserve();
  [[nodiscard]] SegmentPlace place_at(std::int64_t offset, Bytes bytes) const;
  Result<void> check(std::size_t first, std::size_t end);
  Result<void> failed(Error error);

  PagePool* pool_;
  SegmentHash hash_;
  bool is_witnessed_;  ///< Hashed while it is copied, else read again.
  Reservation pages_;
  std::shared_ptr<const PageSpan> mapping_;  ///< Of all reserved pages, where they are in pieces.
  std::optional<HostView> view_;
  std::vector<Fresh> fresh_;
  std::vector<Slot> slots_;
  Bytes bytes_;
  Bytes copied_;
  std::size_t next_ = 0;    ///< The first of `fresh_` that is not all there,
  std::size_t offset_ = 0;  ///< and how much of it is.
  bool failed_ = false;
};

}  // namespace sangam
