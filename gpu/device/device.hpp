// The memory of one device: physical pages behind one address range, and the ways in, out and across.
//
// A back end knows no models: who owns a page is decided above, in gpu/memory. cpu/ is a memfd; cuda/ is the
// driver's virtual memory management (CUDA Driver API, "Virtual Memory Management").
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device/file_descriptor.hpp"
#include "gpu/kernels/paged_kv.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Consecutive pages.
struct PageExtent {
  PageId first{};
  Pages count{};

  bool operator==(const PageExtent&) const = default;
};

enum class Access : std::uint8_t { read, read_write };

/// Pages in an address range of its own, in an order of its own; unmapped when it ends. The pages stay.
class PageSpan {
 public:
  virtual ~PageSpan() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
};

/// Host memory that the device can copy from and to at full speed (pinned on CUDA).
class HostBuffer {
 public:
  virtual ~HostBuffer() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
};

/// What another process needs to map pages of this device: `bytes` of `file` from `offset`. On CPU all pages
/// lie in one file; on CUDA each is a handle of its own.
struct SharedPages {
  FileDescriptor file;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// Sees bytes on their way to where they are stored: exactly those, also if somebody overwrites the source meanwhile.
class CopyWitness {
 public:
  virtual ~CopyWitness() = default;
  virtual void see(std::span<const std::byte> bytes) = 0;
};

/// One piece of a transfer. On CUDA either end may be on the host or on the device; a HostBuffer is faster than
/// other host memory.
struct CopyPiece {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  /// Sees the piece, in parts. The pieces of one witness stand side by side; it sees them one after the other, on one
  /// thread. Only where the host has access.
  CopyWitness* witness = nullptr;
};

/// `copy` may run beside any other call, from any thread; the others one at a time.
class Device {
 public:
  virtual ~Device() = default;

  /// All pages, mapped once for reading and writing, in the order of their numbers.
  [[nodiscard]] virtual PageArena arena() const = 0;
  [[nodiscard]] virtual Pages pages() const = 0;
  /// Whether the host reads and writes arena and spans itself; if not, through `copy` and a HostBuffer only.
  [[nodiscard]] virtual bool host_access() const = 0;

  /// A second mapping of these pages, one after the other.
  virtual Result<std::unique_ptr<PageSpan>> map(std::span<const PageExtent> extents, Access access) = 0;

  /// For another process on this host; each descriptor is the receiver's to close.
  virtual Result<std::vector<SharedPages>> share(std::span<const PageExtent> extents) = 0;
  /// Pages that another process has shared, one after the other. The descriptors are not needed afterwards.
  virtual Result<std::unique_ptr<PageSpan>> import(std::span<const SharedPages> shared, Access access) = 0;

  virtual Result<std::unique_ptr<HostBuffer>> host_buffer(Bytes size) = 0;

  /// Returns when all of it has been copied; after an error any part of it may have been. Pieces must not
  /// overlap.
  virtual Result<void> copy(std::span<const CopyPiece> pieces) = 0;
};

}  // namespace sangam
