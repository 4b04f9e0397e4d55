// A regular file as read-only memory: the kernel pages it in as it is read, and drops it under pressure.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Owns the mapping, not the file: replacing the file by a rename is safe while it is mapped, cutting it is
/// not (reading behind the new end raises SIGBUS).
class MappedFile {
 public:
  /// Refuses what is absent, unreadable or not a regular file; links are followed.
  [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

  /// Also refuses a file of more than `size_max` bytes.
  [[nodiscard]] static Result<MappedFile> open_small(const std::filesystem::path& path, std::size_t size_max);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::string_view text() const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;  ///< Empty files have no mapping.
};

/// Whether the text is what Git LFS leaves in place of a large file that was never downloaded.
[[nodiscard]] bool is_lfs_pointer(std::string_view text);

}  // namespace sangam
