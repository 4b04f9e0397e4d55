// A load under way: everything that it needs is reserved, the bytes come in pieces.
#pragma once

#include <cstddef>
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
  /// Also what had to be copied again.
  [[nodiscard]] Bytes copied() const { return copied_; }
  [[nodiscard]] bool complete() const { return !failed_ && is_proven() && absent_ == 0; }

  /// All that is to share bytes which are there has been compared with them.
  [[nodiscard]] bool is_proven() const { return claims_.empty(); }
  /// Compares the next `most` bytes, at least one. What is not equal for all its digest is copied like the rest;
  /// that takes more pages, for want of which this may fail. After an error the load can only be dropped.
  Result<void> prove(Bytes most);

  /// Copies the next `most` bytes of segments that have a source, at least one, and checks the hash of each segment
  /// that is there with them. The load is proven. After an error it can only be dropped.
  Result<void> copy(Bytes most);
  /// Whether nothing is left for `copy`.
  [[nodiscard]] bool copied_all() const { return next_ == fresh_.size(); }

  /// A segment whose bytes come later, as long as not all of them are there: no slot has a source for it, and nothing
  /// of its digest and size was resident when the load began.
  struct Awaited {
    std::size_t index = 0;  ///< What the load calls it.
    Digest digest;
    Bytes bytes{};
    std::string slot;  ///< One that names it.
  };
  /// In the order of the slots.
  [[nodiscard]] std::vector<Awaited> awaited() const;
  /// The next bytes of an awaited segment, which begins anew at offset 0 and has no gaps. The load is proven. With the
  /// last of them its hash is checked: `corrupt`, and it is awaited from its beginning on. After another error the load
  /// can only be dropped.
  Result<void> put(std::size_t index, Bytes offset, std::span<const std::byte> bytes);
  /// An awaited segment's bytes have been found: `copy` takes them from there. `invalid_input` if they are of another
  /// size.
  Result<void> supply(std::size_t index, std::span<const std::byte> source);

 private:
  friend class SegmentStore;
  /// Hashes what is stored while it is copied.
  struct Witness final : CopyWitness {
    void see(std::span<const std::byte> bytes) override { stream.update(bytes); }
    DigestStream stream;
  };
  /// A segment to be. Its pages are among the reserved ones.
  struct Fresh {
    [[nodiscard]] bool is_awaited() const { return !there && source.empty() && size > Bytes{0}; }

    Digest digest;
    Bytes size{};
    std::span<const std::byte> source;  ///< Empty: its bytes come later.
    std::int64_t offset = 0;  ///< In the reserved pages, one after the other.
    SegmentPlace place;
    std::span<const std::byte> bytes;
    std::unique_ptr<Witness> witness;  ///< From its first byte to its last.
    std::size_t arrived = 0;  ///< Of one that is awaited.
    bool there = false;       ///< Complete, and its hash is right.
  };
  struct Slot {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::shared_ptr<const Segment> resident;  ///< Or, if null:
    std::size_t fresh = 0;
  };

  /// A slot that has a source, and whose digest and size are those of something that is resident or that an earlier
  /// slot has a source for.
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
  /// The `place`th of what is fresh that has this digest and size.
  [[nodiscard]] std::optional<std::size_t> fresh_like(const Digest& digest, Bytes size, std::size_t place) const;
  [[nodiscard]] std::optional<std::size_t> fresh_candidate(const Claim& claim) const;
  std::size_t add_fresh(const Digest& digest, Bytes size, std::span<const std::byte> source);
  [[nodiscard]] std::optional<std::span<const std::byte>> candidate_of(const Claim& claim) const;
  [[nodiscard]] std::vector<Piece> next_pieces(std::size_t most) const;
  [[nodiscard]] std::vector<char> compare(std::span<const Piece> pieces) const;
  void settle(const Claim& claim);
  Result<void> reserve();
  [[nodiscard]] SegmentPlace place_at(std::int64_t offset, Bytes bytes) const;
  /// Adds the copy of `bytes` to a segment's place, from `offset` on.
  void add_pieces(Fresh& fresh, std::size_t offset, std::span<const std::byte> bytes, std::vector<CopyPiece>& pieces);
  [[nodiscard]] std::size_t first_to_copy(std::size_t from) const;
  /// Of segments that have just become whole.
  Result<void> check(const std::vector<std::size_t>& whole);
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
  std::size_t absent_ = 0;  ///< How many of `fresh_` are not there.
  std::size_t next_ = 0;    ///< The first of `fresh_` that has a source and is not all there,
  std::size_t offset_ = 0;  ///< and how much of it is.
  bool failed_ = false;
};

}  // namespace sangam
