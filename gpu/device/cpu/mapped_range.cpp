// The mmap calls.
#include "gpu/device/cpu/mapped_range.hpp"

#include <sys/mman.h>
#include <unistd.h>

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


}  // namespace

Result<MappedRange> MappedRange::reserve(std::size_t bytes) {
  const std::size_t spare = bytes < kHugePage ? 0 : kHugePage;
  void* base = mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return from_mmap(bytes, errno);
  auto* first = static_cast<std::byte*>(base);
  if (spare == 0) return MappedRange({first, bytes});
  const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(base) % kHugePage) % kHugePage;
  if (head > 0) munmap(first, head);
  const auto page = std::size_t(sysconf(_SC_PAGESIZE));
  const std::size_t end = head + (bytes + page - 1) / page * page;
  munmap(first + end, (bytes + spare + page - 1) / page * page - end);
  return MappedRange({first + head, bytes});
}

Result<MappedRange> MappedRange::anonymous(std::size_t bytes) {
  auto range = reserve(bytes);
  if (!range) return range.error();
  std::byte* base = range->bytes().data();
  if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return from_mmap(bytes, errno);
  (void)madvise(base, bytes, MADV_HUGEPAGE);
  // A kernel before 5.14 does not know this call: pages come when they are first touched.
  if (madvise(base, bytes, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) return from_mmap(bytes, errno);
  return range;
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
