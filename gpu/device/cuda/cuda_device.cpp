// Everything that is taken has an owner at once, so a failure at any step gives all of it back, last taken
// first.
#include "gpu/device/cuda/cuda_device.hpp"

#include <fcntl.h>

#include <limits>
#include <string>

#include "gpu/device/cuda/copy_lanes.hpp"
#include "gpu/device/cuda/device_memory.hpp"
#include "messages/vocabulary/assert.hpp"

namespace sangam {

/// In the order in which they are made; they end the other way round.
struct CudaDevice::Parts {
  std::shared_ptr<const CudaContext> context;
  PhysicalPages pages;
  std::unique_ptr<DeviceRange> arena;
  std::unique_ptr<CopyLanes> lanes;

  /// In the order of the extents.
  [[nodiscard]] std::vector<PhysicalPage> chosen(std::span<const PageExtent> extents) const {
    std::vector<PhysicalPage> chosen;
    const auto all = pages.all();
    for (const PageExtent& extent : extents) {
      const std::size_t first = std::size_t(extent.first);
      const std::size_t count = std::size_t(extent.count.count());
      SANGAM_ASSERT(count > 0 && first + count <= all.size(), first, count, all.size());
      chosen.insert(chosen.end(), all.begin() + std::ptrdiff_t(first),
                    all.begin() + std::ptrdiff_t(first + count));
    }
    return chosen;
  }
};

namespace {

std::string described(const CudaDeviceOptions& options) {
  return "cuda device " + std::to_string(options.ordinal) + ": a pool of " +
         std::to_string(options.size.count()) + " bytes in pages of " + std::to_string(options.page.count());
}

Result<void> check(const CudaContext& context, const CudaDeviceOptions& options) {
  const auto granularity = std::int64_t(context.granularity());
  if (options.page.count() <= 0 || options.page.count() % granularity != 0) {
    return make_error(
        ErrorCode::invalid_input,
        described(options) + ": the page size must be a multiple of " + std::to_string(granularity));
  }
  const std::int64_t pages = options.size / options.page;
  if (pages < 1 || pages > std::numeric_limits<std::uint32_t>::max()) {
    return make_error(
        ErrorCode::invalid_input,
        described(options) + ": needs between 1 and 2^32 - 1 pages; change the size of pool or page");
  }
  if (auto current = context.make_current(); !current) return current.error();
  std::size_t free = 0;
  std::size_t total = 0;
  if (const CUresult code = context.driver().mem_get_info(&free, &total); code != CUDA_SUCCESS)
    return context.failure(code, "cuMemGetInfo", "", "check the driver with nvidia-smi");
  if (std::size_t(pages * options.page.count()) > free) {
    return make_error(ErrorCode::exhausted,
                      described(options) + ": of the device's " + std::to_string(total) + " bytes " +
                          std::to_string(free) +
                          " are free; make the pool smaller, or stop what else uses the device");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(std::shared_ptr<const CudaDriver> driver,
                                                       CudaDeviceOptions options) {
  auto context = CudaContext::open(std::move(driver), options.ordinal);
  if (!context) return context.error();
  if (auto checked = check(**context, options); !checked) return checked.error();
  auto pages =
      PhysicalPages::create(*context, Pages(options.size / options.page), std::size_t(options.page.count()));
  if (!pages) return pages.error();
  return assemble(std::make_unique<Parts>(Parts{*context, std::move(*pages), nullptr, nullptr}));
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::adopt(std::shared_ptr<const CudaDriver> driver, int ordinal,
                                                      std::span<const SharedPages> shared) {
  for (const SharedPages& one : shared) {
    if (one.bytes != shared.front().bytes) {
      return make_error(ErrorCode::invalid_input,
                        "pages of " + std::to_string(shared.front().bytes) + " and of " +
                            std::to_string(one.bytes) +
                            " bytes are not one pool; adopt what one device has shared");
    }
  }
  auto context = CudaContext::open(std::move(driver), ordinal);
  if (!context) return context.error();
  auto pages = PhysicalPages::import(*context, shared);
  if (!pages) return pages.error();
  return assemble(std::make_unique<Parts>(Parts{*context, std::move(*pages), nullptr, nullptr}));
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::assemble(std::unique_ptr<Parts> parts) {
  auto arena = DeviceRange::map(parts->context, parts->pages.all(), Access::read_write);
  if (!arena) return arena.error();
  parts->arena = std::move(*arena);
  auto lanes = CopyLanes::create(parts->context);
  if (!lanes) return lanes.error();
  parts->lanes = std::move(*lanes);
  return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(parts)));
}

CudaDevice::CudaDevice(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

CudaDevice::~CudaDevice() = default;

PageArena CudaDevice::arena() const {
  return {parts_->arena->bytes().data(), parts_->pages.all().front().bytes};
}

Pages CudaDevice::pages() const {
  return Pages(std::int64_t(parts_->pages.all().size()));
}

Result<std::unique_ptr<PageSpan>> CudaDevice::map(std::span<const PageExtent> extents, Access access) {
  SANGAM_ASSERT(!extents.empty());
  auto range = DeviceRange::map(parts_->context, parts_->chosen(extents), access);
  if (!range) return range.error();
  return std::unique_ptr<PageSpan>(std::move(*range));
}

Result<std::vector<SharedPages>> CudaDevice::share(std::span<const PageExtent> extents) {
  const CudaContext& context = *parts_->context;
  if (auto current = context.make_current(); !current) return current.error();
  const std::vector<PhysicalPage> pages = parts_->chosen(extents);
  std::vector<SharedPages> shared;
  shared.reserve(pages.size());
  for (const PhysicalPage& page : pages) {
    int descriptor = -1;
    if (const CUresult code = context.driver().mem_export(&descriptor, page.handle,
                                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        code != CUDA_SUCCESS) {
      return context.failure(code, "cuMemExportToShareableHandle",
                             "page " + std::to_string(shared.size()) + " of " + std::to_string(pages.size()),
                             "raise the limit of open files (ulimit -n), or use larger pages");
    }
    shared.push_back({FileDescriptor(descriptor), 0, page.bytes});
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);  // The driver leaves it to be inherited by every program.
  }
  return shared;
}

Result<std::unique_ptr<PageSpan>> CudaDevice::import(std::span<const SharedPages> shared, Access access) {
  // The mapping keeps the memory; the handles go at the end of this call.
  const auto pages = PhysicalPages::import(parts_->context, shared);
  if (!pages) return pages.error();
  auto range = DeviceRange::map(parts_->context, pages->all(), access);
  if (!range) return range.error();
  return std::unique_ptr<PageSpan>(std::move(*range));
}

Result<std::unique_ptr<HostBuffer>> CudaDevice::host_buffer(Bytes size) {
  return PinnedBuffer::create(parts_->context, size);
}

Result<void> CudaDevice::copy(std::span<const CopyPiece> pieces) {
  for (const CopyPiece& piece : pieces) SANGAM_ASSERT(piece.witness == nullptr, "no host access, no witness");
  return parts_->lanes->copy(pieces);
}

}  // namespace sangam
