// The mmap calls.
#include "gpu/device/cpu/mapped_range.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace sangam {
namespace {

Error from_mmap(std::size_t bytes, int code) {
  return make_error(ErrorCode::exhausted,
                    "cpu device: mmap of " + std::to_string(bytes) +
                        " bytes: " + std::generic_category().message(code) +
                        "; raise vm.max_map_count and the address space limit, or free memory");
}

Result<std::span<std::byte>> mapped(std::size_t bytes, int protection, int flags) {
  void* base = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (base == MAP_FAILED) return from_mmap(bytes, errno);
  return std::span(static_cast<std::byte*>(base), bytes);
}

}  // namespace

Result<MappedRange> MappedRange::reserve(std::size_t bytes) {
  const auto range = mapped(bytes, PROT_NONE, MAP_NORESERVE);
  if (!range) return range.error();
  return MappedRange(*range);
}

Result<MappedRange> MappedRange::anonymous(std::size_t bytes) {
  const auto range = mapped(bytes, PROT_READ | PROT_WRITE, MAP_POPULATE);
  if (!range) return range.error();
  return MappedRange(*range);
}

Result<MappedRange> MappedRange::of(std::span<const FilePiece> pieces, Access access) {
  std::size_t total = 0;
  for (const FilePiece& piece : pieces) total += piece.bytes;
  auto range = reserve(total);
  if (!range) return range.error();
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  std::byte* place = range->bytes().data();
  for (const FilePiece& piece : pieces) {
    if (mmap(place, piece.bytes, protection, MAP_SHARED | MAP_FIXED, piece.file, off_t(piece.offset)) ==
        MAP_FAILED)
      return from_mmap(piece.bytes, errno);
    place += piece.bytes;
  }
  return range;
}

MappedRange::MappedRange(MappedRange&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedRange::~MappedRange() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace sangam
