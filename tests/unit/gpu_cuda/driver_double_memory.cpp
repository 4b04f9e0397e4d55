// The double's memory: a handle is a memfd, a reservation is address space without access, a mapping is the
// memfd at its place. So memory lives as long as the kernel says that somebody has it, in any process.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "tests/unit/gpu_cuda/driver_double.hpp"

namespace sangam {
namespace {

void* pointer(CUdeviceptr at) {
  return reinterpret_cast<void*>(at);
}

bool is_ours(const CUmemAllocationProp& asked) {
  return asked.type == CU_MEM_ALLOCATION_TYPE_PINNED && asked.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
         asked.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

int protection(CUmemAccess_flags access) {
  return access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
         : access == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                      : PROT_NONE;
}

constexpr bool whole(std::uint64_t value) {
  return value % DriverDouble::kGranularity == 0;
}

/// A memfd of the double, as told by its name, so that any other file is refused.
bool is_device_memory(int file) {
  char name[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  return readlink(link.c_str(), name, sizeof name - 1) > 0 &&
         std::string(name).starts_with("/memfd:double-device");
}

}  // namespace

CUresult DriverDouble::get_granularity(std::size_t* bytes, const CUmemAllocationProp* asked,
                                       CUmemAllocationGranularity_flags) {
  if (!is_ours(*asked))
    return broken("cuMemGetAllocationGranularity: not memory of a device that can be exported");
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::reserve(CUdeviceptr* base, std::size_t size, std::size_t alignment, CUdeviceptr hint,
                               unsigned long long flags) {
  if (size == 0 || !whole(size)) return broken("cuMemAddressReserve: size is no multiple of the granularity");
  if ((alignment & (alignment - 1)) != 0 || hint != 0 || flags != 0)
    return broken("cuMemAddressReserve: alignment, hint or flags");
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* wide = mmap(nullptr, size + kGranularity, PROT_NONE, kFlags, -1, 0);
  if (wide == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto start = CUdeviceptr(reinterpret_cast<std::uintptr_t>(wide));
  *base = (start + kGranularity - 1) / kGranularity * kGranularity;
  if (*base > start) munmap(wide, *base - start);
  if (*base < start + kGranularity) munmap(pointer(*base + size), start + kGranularity - *base);
  reservations_[*base] = size;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::free_address(CUdeviceptr base, std::size_t size) {
  const auto found = reservations_.find(base);
  if (found == reservations_.end() || found->second != size)
    return broken("cuMemAddressFree: not a range as it was reserved");
  if (overlaps_mapping(base, size)) return broken("cuMemAddressFree: something is still mapped there");
  reservations_.erase(found);
  munmap(pointer(base), size);
  return CUDA_SUCCESS;
}

CUresult DriverDouble::create(CUmemGenericAllocationHandle* handle, std::size_t size,
                              const CUmemAllocationProp* asked, unsigned long long flags) {
  if (size == 0 || !whole(size)) return broken("cuMemCreate: size is no multiple of the granularity");
  if (!is_ours(*asked) || flags != 0)
    return broken("cuMemCreate: not memory of a device that can be exported");
  std::size_t free = 0;
  std::size_t total = 0;
  (void)get_info(&free, &total);
  if (size > free) return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = memfd_create("double-device", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (ftruncate(file, off_t(size)) != 0) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = next_++;
  handles_[*handle] = {file, size};
  return CUDA_SUCCESS;
}

CUresult DriverDouble::release(CUmemGenericAllocationHandle handle) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return broken("cuMemRelease: no such handle");
  close(found->second.file);
  handles_.erase(found);
  return CUDA_SUCCESS;
}

CUresult DriverDouble::map(CUdeviceptr at, std::size_t size, std::size_t offset,
                           CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const auto memory = handles_.find(handle);
  if (memory == handles_.end()) return broken("cuMemMap: no such handle");
  if (!whole(at) || offset != 0 || flags != 0) return broken("cuMemMap: address, offset or flags");
  if (!inside_reservation(at, size)) return broken("cuMemMap: the range is not reserved");
  if (overlaps_mapping(at, size)) return broken("cuMemMap: something is mapped there already");
  // Of memory that came from elsewhere only the size tells whether it is the page that was announced.
  if (size != memory->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  if (mmap(pointer(at), size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->second.file, 0) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  mappings_[at] = {size};
  return CUDA_SUCCESS;
}

CUresult DriverDouble::unmap(CUdeviceptr at, std::size_t size) {
  const auto found = mappings_.find(at);
  if (found == mappings_.end() || found->second.bytes != size)
    return broken("cuMemUnmap: not a range as it was mapped");
  mappings_.erase(found);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  (void)mmap(pointer(at), size, PROT_NONE, kFlags, -1, 0);
  return CUDA_SUCCESS;
}

CUresult DriverDouble::set_access(CUdeviceptr at, std::size_t size, const CUmemAccessDesc* wishes,
                                  std::size_t count) {
  if (count != 1 || wishes->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      wishes->location.id >= machine_.devices)
    return broken("cuMemSetAccess: not one wish for one device");
  for (CUdeviceptr next = at; next < at + size;) {
    const auto found = mappings_.find(next);
    if (found == mappings_.end() || next + found->second.bytes > at + size)
      return broken("cuMemSetAccess: the range is not all mapped, or ends within a page");
    next += found->second.bytes;
  }
  for (auto one = mappings_.lower_bound(at); one != mappings_.end() && one->first < at + size; ++one) {
    one->second.access = wishes->flags;
    if (mprotect(pointer(one->first), one->second.bytes, protection(wishes->flags)) != 0)
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult DriverDouble::export_handle(void* descriptor, CUmemGenericAllocationHandle handle,
                                     CUmemAllocationHandleType type, unsigned long long flags) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return broken("cuMemExportToShareableHandle: no such handle");
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
    return broken("cuMemExportToShareableHandle: type or flags");
  const int copy = dup(found->second.file);
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(descriptor) = copy;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::import_handle(CUmemGenericAllocationHandle* handle, void* descriptor,
                                     CUmemAllocationHandleType type) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return broken("cuMemImportFromShareableHandle: type");
  // A pointer to the number instead of the number itself is the well known mistake.
  const auto number = reinterpret_cast<std::intptr_t>(descriptor);
  if (number < 0 || number > 1 << 20)
    return broken("cuMemImportFromShareableHandle: that is no descriptor's number");
  struct stat file {};
  if (!is_device_memory(int(number)) || fstat(int(number), &file) != 0) return CUDA_ERROR_INVALID_VALUE;
  const int copy = dup(int(number));
  if (copy < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *handle = next_++;
  handles_[*handle] = {copy, std::size_t(file.st_size)};
  return CUDA_SUCCESS;
}

CUresult DriverDouble::host_alloc(void** base, std::size_t size, unsigned flags) {
  if (size == 0 || flags != CU_MEMHOSTALLOC_PORTABLE) return broken("cuMemHostAlloc: size or flags");
  *base = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  if (*base == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  host_[*base] = size;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::host_free(void* base) {
  if (host_.erase(base) == 0) return broken("cuMemFreeHost: no such buffer");
  std::free(base);
  return CUDA_SUCCESS;
}

bool DriverDouble::inside_reservation(CUdeviceptr at, std::size_t size) const {
  auto after = reservations_.upper_bound(at);
  if (after == reservations_.begin()) return false;
  const auto& [base, bytes] = *--after;
  return at + size <= base + bytes;
}

bool DriverDouble::overlaps_mapping(CUdeviceptr at, std::size_t size) const {
  auto next = mappings_.lower_bound(at);
  if (next != mappings_.end() && next->first < at + size) return true;
  return next != mappings_.begin() && (--next)->first + next->second.bytes > at;
}

bool DriverDouble::reachable(CUdeviceptr at, std::size_t size, CUmemAccess_flags access) const {
  bool on_device = false;
  for (const auto& [base, bytes] : reservations_) on_device |= at < base + bytes && base < at + size;
  if (!on_device) {
    for (const auto& [base, bytes] : host_) {
      const auto begin = CUdeviceptr(reinterpret_cast<std::uintptr_t>(base));
      if (at < begin + bytes && begin < at + size) return begin <= at && at + size <= begin + bytes;
    }
    return true;  // Memory of the host that is not pinned, which the driver copies as well.
  }
  for (CUdeviceptr next = at; next < at + size;) {
    auto after = mappings_.upper_bound(next);
    if (after == mappings_.begin()) return false;
    const auto& [base, mapping] = *--after;
    if (next >= base + mapping.bytes || (mapping.access & access) != access) return false;
    next = base + mapping.bytes;
  }
  return true;
}

}  // namespace sangam
