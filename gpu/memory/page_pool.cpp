// The system calls behind the page pool.
#include "gpu/memory/page_pool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace sangam {
namespace {

std::string described(const PagePoolOptions& options) {
  return "page pool of " + std::to_string(options.size.count()) + " bytes in pages of " +
         std::to_string(options.page.count());
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

Result<void> check(const PagePoolOptions& options) {
  const std::int64_t system_page = sysconf(_SC_PAGESIZE);
  if (options.page.count() <= 0 || options.page.count() % system_page != 0) {
    return make_error(
        ErrorCode::invalid_input,
        described(options) + ": the page size must be a multiple of " + std::to_string(system_page));
  }
  const std::int64_t pages = options.size / options.page;
  if (pages < 1 || pages > std::numeric_limits<std::uint32_t>::max()) {
    return make_error(
        ErrorCode::invalid_input,
        described(options) + ": needs between 1 and 2^32 - 1 pages; change the size of pool or page");
  }
  if (const Bytes available = memory_available(); options.size > available) {
    return make_error(ErrorCode::exhausted, described(options) + ": the machine has " +
                                                std::to_string(available.count()) +
                                                " bytes available; make the pool smaller");
  }
  return {};
}

Error from_system(const PagePoolOptions& options, const char* call, int code) {
  return make_error(ErrorCode::exhausted, described(options) + ": " + call + ": " +
                                              std::generic_category().message(code) +
                                              "; make the pool smaller");
}

Error close_after(int file, Error error) {
  close(file);
  return error;
}

}  // namespace

Result<std::unique_ptr<PagePool>> PagePool::create(PagePoolOptions options) {
  if (auto checked = check(options); !checked) return checked.error();
  const Pages total{options.size / options.page};
  const std::size_t bytes = std::size_t(total.count() * options.page.count());

  const int file = memfd_create("sangam-pages", MFD_CLOEXEC);
  if (file < 0) return from_system(options, "memfd_create", errno);
  if (ftruncate(file, off_t(bytes)) != 0) return close_after(file, from_system(options, "ftruncate", errno));
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (base == MAP_FAILED) return close_after(file, from_system(options, "mmap", errno));
  const PageArena arena{static_cast<std::byte*>(base), std::size_t(options.page.count())};
  auto pool = std::unique_ptr<PagePool>(new PagePool(file, arena, total));

  (void)madvise(base, bytes, MADV_HUGEPAGE);  // advice: a kernel that cannot follow it serves as well
  // Through the mapping, so that huge pages are used; a kernel before 5.14 does not know this call.
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return pool;
  if (errno != EINVAL) return from_system(options, "madvise", errno);
  if (const int code = posix_fallocate(file, 0, off_t(bytes)); code != 0)
    return from_system(options, "posix_fallocate", code);
  return pool;
}

PagePool::PagePool(int file, PageArena arena, Pages total) : file_(file), arena_(arena), pages_(total) {}

PagePool::~PagePool() {
  munmap(arena_.base, std::size_t(pages_.total().count()) * arena_.page_bytes);
  close(file_);
}

}  // namespace sangam
