// Pages for tests of handing over: a small file each, whose first bytes are its number.
#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device/device.hpp"

namespace sangam {

inline constexpr std::size_t kNumberedBytes = 4096;

/// Page i holds first + i, and says that it begins at offset i.
inline std::vector<SharedPages> numbered_files(std::uint32_t first, std::uint32_t count) {
  std::vector<SharedPages> pages;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = first + i;
    FileDescriptor file(memfd_create("numbered", MFD_CLOEXEC));
    REQUIRE(pwrite(file.number(), &number, sizeof number, 0) == sizeof number);
    pages.push_back({std::move(file), i, kNumberedBytes});
  }
  return pages;
}

/// Whether these are all pages of `numbered_files(first, count)`, in order.
inline bool are_numbered(std::span<const SharedPages> pages, std::uint32_t first, std::uint32_t count) {
  if (pages.size() != count) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t number = 0;
    const bool read = pread(pages[i].file.number(), &number, sizeof number, 0) == sizeof number;
    if (!read || number != first + i || pages[i].offset != i || pages[i].bytes != kNumberedBytes)
      return false;
  }
  return true;
}

}  // namespace sangam
