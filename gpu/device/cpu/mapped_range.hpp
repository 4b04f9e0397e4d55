// A range of this process's addresses, reserved first and then filled with pieces of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/device/device.hpp"

namespace sangam {

/// Bytes of a file that lie one after the other. Offset and size are multiples of the system's page.
struct FilePiece {
  int file = -1;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

/// A range of this size or more begins on a multiple of it, so that huge pages of a file can be mapped as such.
constexpr std::size_t kHugePage = 2 << 20;

/// Unmapped when it ends. What is not placed cannot be touched.
class MappedRange {
 public:
  static Result<MappedRange> reserve(std::size_t bytes);
  /// Memory of this process alone, zero, all of it there, in huge pages as far as the kernel has some.
  static Result<MappedRange> anonymous(std::size_t bytes);
  /// The pieces one after the other.
  static Result<MappedRange> of(std::span<const FilePiece> pieces, Access access);

  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&&) = delete;
  ~MappedRange();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedRange(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace sangam
