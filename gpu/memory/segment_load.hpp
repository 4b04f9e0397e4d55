// A load under way: everything that it needs is reserved, the bytes come in pieces.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/memory/host_view.hpp"
#include "gpu/memory/slot_table.hpp"

namespace sangam {

/// Called from several threads at once.
using SegmentHash = std::function<Digest(std::span<const std::byte>)>;

/// Made, proven and committed on the thread of the pool; copied from any one thread at a time. Dropped before it
/// is committed, on the thread of the pool, it gives everything back.
class SegmentLoad {
 public:
  /// What is not resident yet, as far as it is proven.
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  [[nodiscard]] Bytes copied() const { return copied_; }
  [[nodiscard]] bool complete() const { return !failed_ && is_proven() && next_ == fresh_.size(); }

  /// All that is to share bytes which are there has been compared with them.
  [[nodiscard]] bool is_proven() const { return claims_.empty(); }
  /// Compares the next `most` bytes, at least one. What is not equal for all its digest is copied like the rest;
  /// that takes more pages, for want of which this may fail. After an error the load can only be dropped.
  Result<void> prove(Bytes most);

  /// Copies the next `most` bytes of a load that is proven, at least one, and checks the hash of each segment that
  /// is there with them. After an error the load can only be dropped.
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

  /// A slot whose digest and size are those of something that is there, or comes with an earlier slot.
  struct Claim {
    std::size_t slot = 0;
    Digest digest;
    std::span<const std::byte> source;
    std::vector<std::shared_ptr<const Segment>> residents;
    std::size_t candidate = 0;  ///< Among these, then among what is fresh, in the order of the slots.
    std::size_t compared = 0;   ///< Bytes that are equal to this one's.
  };
  /// A part of a comparison.
  struct Piece {
    std::span<const std::byte> there;
    std::span<const std::byte> source;
    std::size_t claim = 0;
  };

  /// `hash` null: digest_of.
  SegmentLoad(PagePool& pool, SegmentHash hash);
  /// Whether something of this digest and size comes with an earlier slot, which `claim` would share.
  [[nodiscard]] std::optional<std::size_t> fresh_like(const Digest& digest, std::size_t bytes,
                                                      std::size_t place) const;
  std::size_t add_fresh(const Digest& digest, std::span<const std::byte> source);
  [[nodiscard]] std::optional<std::span<const std::byte>> candidate_of(const Claim& claim) const;
  [[nodiscard]] std::vector<Piece> next_pieces(std::size_t most) const;
  [[nodiscard]] std::vector<char> compare(std::span<const Piece> pieces) const;
  void settle(const Claim& claim);
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
  std::unordered_map<Digest, std::vector<std::size_t>> fresh_by_digest_;
  std::vector<Slot> slots_;
  std::vector<Claim> claims_;  ///< Not proven yet.
  std::size_t reserved_ = 0;   ///< How many of `fresh_` have pages.
  Bytes bytes_;
  Bytes copied_;
  std::size_t next_ = 0;    ///< The first of `fresh_` that is not all there,
  std::size_t offset_ = 0;  ///< and how much of it is.
  bool failed_ = false;
};

}  // namespace sangam
