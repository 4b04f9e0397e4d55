// Bytes that cross hosts beside the mesh: who offers them, and who reads them. The two ends know each other only by
// this; messages/mesh carries it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// What the owner of some bytes calls them.
using BlobName = Name<struct BlobKind>;
/// XXH3-128, most significant byte first.
using BlobHash = std::array<std::uint8_t, 16>;

/// Bytes where they lie, perhaps in pieces. They stay and do not change as long as anyone holds the pin, which any
/// thread may let go of.
struct Blob {
  std::vector<std::span<const std::byte>> pieces;
  BlobHash hash{};
  std::shared_ptr<const void> pin;
};

/// What an actor offers to other hosts.
class BlobShelf {
 public:
  virtual ~BlobShelf() = default;
  /// On the channel's thread. `not_found` where there is no such blob.
  [[nodiscard]] virtual Result<Blob> find(const BlobName& name) = 0;
};

/// Bytes of a blob that have arrived; valid until the next call of the pull they came from.
struct BlobPart {
  BlobName name;
  Bytes size{0};  ///< Of the whole blob.
  Bytes offset{0};
  std::span<const std::byte> bytes;
  BlobHash hash{};  ///< Of the whole blob, for the reader to check.

  [[nodiscard]] bool is_last() const { return offset + Bytes(std::int64_t(bytes.size())) == size; }
};

/// Reads blobs of one owner, on one thread. Its end cancels what has been asked for and has not come.
class BlobPull {
 public:
  virtual ~BlobPull() = default;
  /// At most `kBlobAsksMax` that are not complete; one that turns out larger than `most` ends the pull.
  virtual void ask(const BlobName& name, Bytes most) = 0;
  /// Parts come in order, blob after blob as they were asked for. Nothing: none came within `wait`. An error ends the
  /// pull: `unavailable` where the other side is gone or cannot be reached, its own code where it refuses a blob,
  /// `corrupt` where it says what makes no sense.
  [[nodiscard]] virtual Result<std::optional<BlobPart>> next(Millis wait) = 0;
};
inline constexpr std::size_t kBlobAsksMax = 1024;

/// The way to other hosts. Thread-safe.
class BlobChannel {
 public:
  virtual ~BlobChannel() = default;
  /// `shelf` is asked until `withdraw` returns.
  virtual void offer(const ActorName& owner, BlobShelf& shelf) = 0;
  /// Ends all reading from it; pins are let go of as soon as what is on the way has left, or its reader is given up.
  virtual void withdraw(const ActorName& owner) = 0;
  /// Connects in the background. `not_found` where nobody knows of a channel to this actor.
  [[nodiscard]] virtual Result<std::unique_ptr<BlobPull>> open(const ActorName& owner) = 0;
};

}  // namespace sangam
