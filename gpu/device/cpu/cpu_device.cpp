// The system calls behind a CPU device.
#include "gpu/device/cpu/cpu_device.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "gpu/device/cpu/stream_copy.hpp"
#include "gpu/device/parallel.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

/// One core does not saturate the memory: a large copy is shared among a few. Below this a thread costs more
/// than it brings (50 us against 1 ms for 8 MiB).
constexpr std::size_t kThreadBytes = 8 << 20;
constexpr std::size_t kThreadsMax = 4;
/// What is larger than a core's share of the caches leaves nothing useful in them.
constexpr std::size_t kStreamBytes = 8 << 20;

class MappedSpan final : public PageSpan {
 public:
  explicit MappedSpan(MappedRange range) : range_(std::move(range)) {}
  [[nodiscard]] std::span<std::byte> bytes() const override { return range_.bytes(); }

 private:
  MappedRange range_;
};

class MappedBuffer final : public HostBuffer {
 public:
  MappedBuffer(MappedRange range, std::size_t size) : range_(std::move(range)), size_(size) {}
  [[nodiscard]] std::span<std::byte> bytes() const override { return range_.bytes().first(size_); }

 private:
  MappedRange range_;
  std::size_t size_;
};

std::string described(const CpuDeviceOptions& options) {
  return "cpu device of " + std::to_string(options.size.count()) + " bytes in pages of " +
         std::to_string(options.page.count());
}

Error from_system(const std::string& what, const char* call, int code) {
  return make_error(ErrorCode::exhausted, what + ": " + call + ": " + std::generic_category().message(code) +
                                              "; make it smaller or free memory");
}

/// What the kernel says could be used without swapping; the most that we dare to reserve.
Bytes memory_available() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::int64_t kibibytes = 0;
  while (meminfo >> key >> kibibytes) {
    if (key == "MemAvailable:") return Bytes(kibibytes * 1024);
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return Bytes(std::numeric_limits<std::int64_t>::max());
}

Result<void> check_available(const std::string& what, Bytes needed) {
  const Bytes available = memory_available();
  if (needed <= available) return {};
  return make_error(ErrorCode::exhausted, what + ": needs " + std::to_string(needed.count()) +
                                              " bytes, the machine has " + std::to_string(available.count()) +
                                              " available; make it smaller");
}

Result<void> check(const CpuDeviceOptions& options) {
  const std::int64_t system_page = sysconf(_SC_PAGESIZE);
  if (options.page.count() <= 0 || options.page.count() % system_page != 0) {
    return make_error(
        ErrorCode::invalid_input,
        described(options) + ": the page size must be a multiple of " + std::to_string(system_page));
  }
  const std::int64_t pages = options.size / options.page;
  if (pages < 1 || pages > std::numeric_limits<std::uint32_t>::max()) {
    return make_error(ErrorCode::invalid_input,
                      described(options) +
                          ": needs between 1 and 2^32 - 1 pages; change the size of device "
                          "or page");
  }
  return {};
}

std::size_t bytes_of(const CpuDeviceOptions& options) {
  return std::size_t(options.size / options.page * options.page.count());
}

/// Memory that somebody could take away under a reader would end the reader (SIGBUS): it must be sealed.
Result<struct stat> sealed_file(int file, const std::string& what) {
  struct stat found {};
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(file, &found) != 0) {
    return make_error(ErrorCode::corrupt,
                      what + ": the file is no sealed memory of a cpu device; it is not used");
  }
  return found;
}

/// Most systems give a memfd no huge pages by themselves. With them a copy is faster by a third, and a peer that maps
/// the pool has all of it after a few page faults. Where the kernel has none to give (or is older than 6.1), small
/// ones serve as well.
Result<void> ask_for_huge_pages(const std::string& what, std::span<std::byte> range) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which the C library's headers may lack
  constexpr std::size_t kOne = 4096;
  (void)madvise(range.data(), range.size(), MADV_HUGEPAGE);
  for (std::size_t at = 0; at + kHugePage <= range.size(); at += kHugePage) {
    // It collapses only where there is something, and takes no longer for zeros than a first touch.
    if (madvise(&range[at], kOne, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) return from_system(what, "madvise", errno);
  }
  (void)madvise(range.data(), range.size(), kCollapse);
  return {};
}

/// Allocates and maps all of it; a kernel before 5.14 does not know this call.
Result<void> populate(const std::string& what, std::span<std::byte> range, int file) {
  if (auto asked = ask_for_huge_pages(what, range); !asked) return asked;
  if (madvise(range.data(), range.size(), MADV_POPULATE_WRITE) == 0) return {};
  if (errno != EINVAL) return from_system(what, "madvise", errno);
  if (const int code = posix_fallocate(file, 0, off_t(range.size())); code != 0)
    return from_system(what, "posix_fallocate", code);
  return {};
}

using CopyBytes = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

void cached_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

/// Bytes [first, first + count) of all pieces together.
void copy_part(std::span<const CopyPiece> pieces, std::size_t first, std::size_t count, CopyBytes copy) {
  for (const CopyPiece& piece : pieces) {
    if (count == 0) return;
    if (first >= piece.bytes) {
      first -= piece.bytes;
      continue;
    }
    const std::size_t now = std::min(count, piece.bytes - first);
    copy(piece.to + first, piece.from + first, now);
    count -= now;
    first = 0;
  }
}

std::size_t bytes_of(std::span<const CopyPiece> pieces) {
  std::size_t bytes = 0;
  for (const CopyPiece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

/// Each witness has a thread at a time. The largest first, so that all threads end at about the same time.
void copy_witnessed(std::span<const CopyPiece> pieces, std::size_t threads) {
  std::vector<std::span<const CopyPiece>> runs;
  for (auto first = pieces.begin(); first != pieces.end();) {
    const auto is_other = [&](const CopyPiece& piece) { return piece.witness != first->witness; };
    const auto end = std::find_if(first, pieces.end(), is_other);
    runs.emplace_back(first, end);
    first = end;
  }
  const auto size = [](std::span<const CopyPiece> run) { return bytes_of(run); };
  std::ranges::stable_sort(runs, std::ranges::greater(), size);
  for_each_index(runs.size(), threads, [&](std::size_t i) {
    for (const CopyPiece& piece : runs[i]) {
      if (piece.witness != nullptr) stream_copy(piece.to, piece.from, piece.bytes, *piece.witness);
      if (piece.witness == nullptr) stream_copy(piece.to, piece.from, piece.bytes);
    }
  });
}

}  // namespace

CpuDevice::CpuDevice(FileDescriptor file, MappedRange range, std::size_t page_bytes, bool adopted)
    : file_(std::move(file)), range_(std::move(range)), page_bytes_(page_bytes), adopted_(adopted) {}

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(CpuDeviceOptions options) {
  if (auto checked = check(options); !checked) return checked.error();
  const std::string what = described(options);
  if (auto enough = check_available(what, options.size); !enough) return enough.error();
  FileDescriptor file(memfd_create("sangam-pages", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return from_system(what, "memfd_create", errno);
  if (ftruncate(file.number(), off_t(bytes_of(options))) != 0) return from_system(what, "ftruncate", errno);
  if (fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return from_system(what, "fcntl", errno);
  auto device = open(std::move(file), options, false);
  if (!device) return device;
  if (auto there = populate(what, (*device)->range_.bytes(), (*device)->file_.number()); !there)
    return there.error();
  return device;
}

Result<std::unique_ptr<CpuDevice>> CpuDevice::adopt(FileDescriptor file, CpuDeviceOptions options) {
  if (auto checked = check(options); !checked) return checked.error();
  const std::string what = described(options);
  const auto found = sealed_file(file.number(), what);
  if (!found) return found.error();
  if (std::size_t(found->st_size) != bytes_of(options)) {
    return make_error(ErrorCode::corrupt, what + ": the memory to adopt has " +
                                              std::to_string(found->st_size) +
                                              " bytes; it is another device's, or size or page were changed");
  }
  const std::int64_t absent = std::max<std::int64_t>(0, found->st_size - found->st_blocks * 512);
  if (auto enough = check_available(what, Bytes(absent)); !enough) return enough.error();
  // What is allocated need not be mapped at once: that takes longer than all else, and no touch can fail.
  if (const int code = absent == 0 ? 0 : posix_fallocate(file.number(), 0, found->st_size); code != 0)
    return from_system(what, "posix_fallocate", code);
  return open(std::move(file), options, true);
}

Result<std::unique_ptr<CpuDevice>> CpuDevice::open(FileDescriptor file, CpuDeviceOptions options,
                                                   bool adopted) {
  const FilePiece whole{file.number(), 0, bytes_of(options)};
  auto range = MappedRange::of({&whole, 1}, Access::read_write);
  if (!range) return range.error();
  const auto page = std::size_t(options.page.count());
  return std::unique_ptr<CpuDevice>(new CpuDevice(std::move(file), std::move(*range), page, adopted));
}

Result<FileDescriptor> CpuDevice::file() const {
  FileDescriptor copy(fcntl(file_.number(), F_DUPFD_CLOEXEC, 0));
  if (copy) return copy;
  return make_error(ErrorCode::exhausted, "cpu device: a file descriptor for another process: " +
                                              std::generic_category().message(errno) +
                                              "; raise the limit of open files");
}

FilePiece CpuDevice::piece_of(PageExtent extent) const {
  const std::int64_t end = std::int64_t(extent.first) + extent.count.count();
  SANGAM_ASSERT(extent.count > Pages{0} && end <= pages().count(), std::int64_t(extent.first), extent.count,
                pages());
  return {file_.number(), std::uint64_t(extent.first) * page_bytes_,
          std::size_t(extent.count.count()) * page_bytes_};
}

Result<std::unique_ptr<PageSpan>> CpuDevice::map(std::span<const PageExtent> extents, Access access) {
  SANGAM_ASSERT(!extents.empty());
  std::vector<FilePiece> pieces;
  for (const PageExtent& extent : extents) pieces.push_back(piece_of(extent));
  auto range = MappedRange::of(pieces, access);
  if (!range) return range.error();
  return std::make_unique<MappedSpan>(std::move(*range));
}

Result<std::vector<SharedPages>> CpuDevice::share(std::span<const PageExtent> extents) {
  std::vector<SharedPages> shared;
  for (const PageExtent& extent : extents) {
    auto file = this->file();
    if (!file) return file.error();
    const FilePiece piece = piece_of(extent);
    shared.push_back({std::move(*file), piece.offset, piece.bytes});
  }
  return shared;
}

Result<std::unique_ptr<PageSpan>> CpuDevice::import(std::span<const SharedPages> shared, Access access) {
  std::vector<FilePiece> pieces;
  for (const SharedPages& piece : shared) {
    const auto found = sealed_file(piece.file.number(), "cpu device: shared pages");
    if (!found) return found.error();
    const std::uint64_t size = std::uint64_t(found->st_size);
    const std::uint64_t system_page = std::uint64_t(sysconf(_SC_PAGESIZE));
    if (piece.bytes == 0 || piece.offset > size || piece.bytes > size - piece.offset ||
        piece.offset % system_page != 0 || piece.bytes % system_page != 0) {
      return make_error(ErrorCode::invalid_input,
                        "cpu device: shared pages at " + std::to_string(piece.offset) + ", " +
                            std::to_string(piece.bytes) + " bytes, are not whole pages within the file's " +
                            std::to_string(size) + "; the sender's device is of another kind");
    }
    pieces.push_back({piece.file.number(), piece.offset, piece.bytes});
  }
  if (pieces.empty()) return make_error(ErrorCode::invalid_input, "cpu device: no shared pages were named");
  auto range = MappedRange::of(pieces, access);
  if (!range) return range.error();
  return std::make_unique<MappedSpan>(std::move(*range));
}

Result<std::unique_ptr<HostBuffer>> CpuDevice::host_buffer(Bytes size) {
  const std::string what = "cpu device: a host buffer of " + std::to_string(size.count()) + " bytes";
  if (size <= Bytes{0}) return make_error(ErrorCode::invalid_input, what + ": ask for at least one");
  if (auto enough = check_available(what, size); !enough) return enough.error();
  auto range = MappedRange::anonymous(std::size_t(size.count()));
  if (!range) return range.error();
  return std::make_unique<MappedBuffer>(std::move(*range), std::size_t(size.count()));
}

Result<void> CpuDevice::copy(std::span<const CopyPiece> pieces) {
  const std::size_t bytes = bytes_of(pieces);
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t parts = std::clamp<std::size_t>(bytes / kThreadBytes, 1, std::min(cores, kThreadsMax));
  if (std::ranges::any_of(pieces, [](const CopyPiece& piece) { return piece.witness != nullptr; })) {
    copy_witnessed(pieces, parts);
    return {};
  }
  const std::size_t part = (bytes / parts + 4095) / 4096 * 4096;
  CopyBytes copy_bytes = stream_copy;
  if (bytes < kStreamBytes) copy_bytes = cached_copy;
  std::vector<std::jthread> others;
  for (std::size_t first = part; first < bytes; first += part)
    others.emplace_back([=] { copy_part(pieces, first, std::min(part, bytes - first), copy_bytes); });
  copy_part(pieces, 0, std::min(part, bytes), copy_bytes);
  return {};
}

}  // namespace sangam
