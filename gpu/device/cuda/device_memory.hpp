// Physical memory of a CUDA device and the address ranges where it is seen: owners that undo what they did.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gpu/device/cuda/cuda_context.hpp"
#include "gpu/device/device.hpp"

namespace sangam {

/// One allocation of the driver, mapped only as a whole.
struct PhysicalPage {
  CUmemGenericAllocationHandle handle{};
  std::size_t bytes = 0;
};

/// Owns the handles of physical memory. The memory itself lives until nobody, in any process, has it mapped,
/// holds a handle of it or a descriptor.
class PhysicalPages {
 public:
  static Result<PhysicalPages> create(std::shared_ptr<const CudaContext> context, Pages count,
                                      std::size_t page_bytes);
  /// What another process has exported; the descriptors stay the caller's.
  static Result<PhysicalPages> import(std::shared_ptr<const CudaContext> context,
                                      std::span<const SharedPages> shared);
  ~PhysicalPages();
  PhysicalPages(PhysicalPages&&) noexcept = default;
  PhysicalPages(const PhysicalPages&) = delete;
  PhysicalPages& operator=(const PhysicalPages&) = delete;

  [[nodiscard]] std::span<const PhysicalPage> all() const { return pages_; }

 private:
  explicit PhysicalPages(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {}

  std::shared_ptr<const CudaContext> context_;
  std::vector<PhysicalPage> pages_;
};

/// One address range with pages in it, one after the other.
class DeviceRange final : public PageSpan {
 public:
  static Result<std::unique_ptr<DeviceRange>> map(std::shared_ptr<const CudaContext> context,
                                                  std::span<const PhysicalPage> pages, Access access);
  ~DeviceRange() override;
  DeviceRange(const DeviceRange&) = delete;
  DeviceRange& operator=(const DeviceRange&) = delete;

  /// Addresses of the device: for its kernels and for `copy`, not for this processor.
  [[nodiscard]] std::span<std::byte> bytes() const override;

 private:
  DeviceRange(std::shared_ptr<const CudaContext> context, CUdeviceptr base, std::size_t size)
      : context_(std::move(context)), base_(base), size_(size) {}
  Result<void> map_all(std::span<const PhysicalPage> pages);
  Result<void> allow(Access access);

  std::shared_ptr<const CudaContext> context_;
  CUdeviceptr base_;
  std::size_t size_;
  std::vector<std::size_t> mapped_;  ///< The bytes of each page that lies in the range so far.
};

/// Host memory that no page fault can touch.
class PinnedBuffer final : public HostBuffer {
 public:
  static Result<std::unique_ptr<HostBuffer>> create(std::shared_ptr<const CudaContext> context, Bytes size);
  ~PinnedBuffer() override;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }

 private:
  PinnedBuffer(std::shared_ptr<const CudaContext> context, std::span<std::byte> bytes)
      : context_(std::move(context)), bytes_(bytes) {}

  std::shared_ptr<const CudaContext> context_;
  std::span<std::byte> bytes_;
};

}  // namespace sangam
