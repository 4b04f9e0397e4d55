// What is undone here cannot fail unless the device is lost; the end of the process then frees the memory, so
// the answers of undoing calls are not looked at.
#include "gpu/device/cuda/device_memory.hpp"

#include <numeric>
#include <ranges>
#include <string>

namespace sangam {
namespace {

std::string one_of(std::size_t index, std::size_t count, std::size_t bytes) {
  return "page " + std::to_string(index) + " of " + std::to_string(count) + ", " + std::to_string(bytes) +
         " bytes";
}

}  // namespace

Result<PhysicalPages> PhysicalPages::create(std::shared_ptr<const CudaContext> context, Pages count,
                                            std::size_t page_bytes) {
  if (auto current = context->make_current(); !current) return current.error();
  PhysicalPages made(std::move(context));
  const CUmemAllocationProp asked = made.context_->allocation();
  const std::size_t total = std::size_t(count.count());
  made.pages_.reserve(total);
  for (std::size_t i = 0; i < total; ++i) {
    PhysicalPage page{{}, page_bytes};
    if (const CUresult code = made.context_->driver().mem_create(&page.handle, page_bytes, &asked, 0);
        code != CUDA_SUCCESS) {
      return made.context_->failure(code, "cuMemCreate", one_of(i, total, page_bytes),
                                    "make the pool smaller, or stop what else uses the device");
    }
    made.pages_.push_back(page);
  }
  return made;
}

Result<PhysicalPages> PhysicalPages::import(std::shared_ptr<const CudaContext> context,
                                            std::span<const SharedPages> shared) {
  if (auto current = context->make_current(); !current) return current.error();
  PhysicalPages made(std::move(context));
  const CudaContext& device = *made.context_;
  made.pages_.reserve(shared.size());
  for (const SharedPages& one : shared) {
    const std::string which = one_of(made.pages_.size(), shared.size(), one.bytes);
    if (!one.file || one.offset != 0 || one.bytes == 0 || one.bytes % device.granularity() != 0) {
      return make_error(ErrorCode::invalid_input,
                        "import of " + which + " from offset " + std::to_string(one.offset) +
                            ": a page of a CUDA device has a file of its own, from 0, and a multiple of " +
                            std::to_string(device.granularity()) + " bytes; share it from such a device");
    }
    PhysicalPage page{{}, one.bytes};
    // The call takes the number of the descriptor itself in the place of a pointer.
    void* descriptor = reinterpret_cast<void*>(std::intptr_t(one.file.number()));
    if (const CUresult code =
            device.driver().mem_import(&page.handle, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        code != CUDA_SUCCESS) {
      return device.failure(code, "cuMemImportFromShareableHandle", which,
                            "import only what a process on this machine has shared from this device");
    }
    made.pages_.push_back(page);
  }
  return made;
}

PhysicalPages::~PhysicalPages() {
  if (pages_.empty()) return;
  (void)context_->make_current();
  for (const PhysicalPage& page : std::views::reverse(pages_))
    (void)context_->driver().mem_release(page.handle);
}

Result<std::unique_ptr<DeviceRange>> DeviceRange::map(std::shared_ptr<const CudaContext> context,
                                                      std::span<const PhysicalPage> pages, Access access) {
  const std::size_t size =
      std::accumulate(pages.begin(), pages.end(), std::size_t{0},
                      [](std::size_t sum, const auto& page) { return sum + page.bytes; });
  if (size == 0) return make_error(ErrorCode::invalid_input, "a mapping of no pages; name at least one");
  if (auto current = context->make_current(); !current) return current.error();
  CUdeviceptr base = 0;
  if (const CUresult code = context->driver().mem_address_reserve(&base, size, context->granularity(), 0, 0);
      code != CUDA_SUCCESS) {
    return context->failure(code, "cuMemAddressReserve", std::to_string(size) + " bytes",
                            "end other mappings, or map fewer pages");
  }
  auto range = std::unique_ptr<DeviceRange>(new DeviceRange(std::move(context), base, size));
  if (auto mapped = range->map_all(pages); !mapped) return mapped.error();
  if (auto allowed = range->allow(access); !allowed) return allowed.error();
  return range;
}

Result<void> DeviceRange::map_all(std::span<const PhysicalPage> pages) {
  mapped_.reserve(pages.size());
  CUdeviceptr at = base_;
  for (const PhysicalPage& page : pages) {
    if (const CUresult code = context_->driver().mem_map(at, page.bytes, 0, page.handle, 0);
        code != CUDA_SUCCESS) {
      return context_->failure(code, "cuMemMap", one_of(mapped_.size(), pages.size(), page.bytes),
                               "share and import pages with the size they were made with");
    }
    mapped_.push_back(page.bytes);
    at += page.bytes;
  }
  return {};
}

Result<void> DeviceRange::allow(Access access) {
  CUmemAccessDesc wish{};
  wish.location = context_->allocation().location;
  wish.flags = access == Access::read ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (const CUresult code = context_->driver().mem_set_access(base_, size_, &wish, 1); code != CUDA_SUCCESS) {
    return context_->failure(
        code, "cuMemSetAccess",
        std::to_string(size_) + " bytes, " + (access == Access::read ? "read" : "read and write"),
        "stop what else uses the device");
  }
  return {};
}

DeviceRange::~DeviceRange() {
  (void)context_->make_current();
  CUdeviceptr end = std::accumulate(mapped_.begin(), mapped_.end(), base_);
  for (const std::size_t bytes : std::views::reverse(mapped_)) {
    end -= bytes;
    (void)context_->driver().mem_unmap(end, bytes);
  }
  (void)context_->driver().mem_address_free(base_, size_);
}

std::span<std::byte> DeviceRange::bytes() const {
  return {reinterpret_cast<std::byte*>(base_), size_};
}

Result<std::unique_ptr<HostBuffer>> PinnedBuffer::create(std::shared_ptr<const CudaContext> context,
                                                         Bytes size) {
  if (size.count() <= 0) {
    return make_error(ErrorCode::invalid_input,
                      "a host buffer of " + std::to_string(size.count()) + " bytes; ask for at least one");
  }
  if (auto current = context->make_current(); !current) return current.error();
  void* base = nullptr;
  if (const CUresult code =
          context->driver().mem_host_alloc(&base, std::size_t(size.count()), CU_MEMHOSTALLOC_PORTABLE);
      code != CUDA_SUCCESS) {
    return context->failure(code, "cuMemHostAlloc", std::to_string(size.count()) + " bytes",
                            "make the host budget smaller: pinned memory is never swapped");
  }
  const std::span<std::byte> bytes(static_cast<std::byte*>(base), std::size_t(size.count()));
  return std::unique_ptr<HostBuffer>(new PinnedBuffer(std::move(context), bytes));
}

PinnedBuffer::~PinnedBuffer() {
  (void)context_->make_current();
  (void)context_->driver().mem_free_host(bytes_.data());
}

}  // namespace sangam
