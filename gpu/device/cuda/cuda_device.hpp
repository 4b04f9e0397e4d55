// A CUDA device's memory by the driver's virtual memory management: one handle a page, mapped once in the
// order of page numbers, and any number of times more.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gpu/device/device.hpp"

namespace sangam {

struct CudaDriver;

struct CudaDeviceOptions {
  int ordinal = 0;      ///< As the driver counts, from 0.
  Bytes size{};         ///< Rounded down to whole pages.
  Bytes page{2 << 20};  ///< A multiple of the driver's granularity, which is 2 MiB on all devices so far.
};

/// Takes all its memory when it is made, or none. What lies on it (spans, host buffers) may outlive it.
class CudaDevice final : public Device {
 public:
  /// `exhausted` if the device has not so much free memory.
  static Result<std::unique_ptr<CudaDevice>> create(std::shared_ptr<const CudaDriver> driver,
                                                    CudaDeviceOptions options);
  /// The pool of another process, alive or dead, from all that its `share` gave, in the order of page
  /// numbers. The bytes are as they were left; whoever adopts checks what they are. `size` and `page` come
  /// with the pages.
  static Result<std::unique_ptr<CudaDevice>> adopt(std::shared_ptr<const CudaDriver> driver, int ordinal,
                                                   std::span<const SharedPages> pages);
  ~CudaDevice() override;

  [[nodiscard]] PageArena arena() const override;
  [[nodiscard]] Pages pages() const override;
  [[nodiscard]] bool host_access() const override { return false; }
  /// Addresses of the device, as those of `arena`.
  Result<std::unique_ptr<PageSpan>> map(std::span<const PageExtent> extents, Access access) override;
  /// One descriptor a page: raise the limit of open files to share thousands.
  Result<std::vector<SharedPages>> share(std::span<const PageExtent> extents) override;
  Result<std::unique_ptr<PageSpan>> import(std::span<const SharedPages> shared, Access access) override;
  Result<std::unique_ptr<HostBuffer>> host_buffer(Bytes size) override;
  Result<void> copy(std::span<const CopyPiece> pieces) override;

 private:
  struct Parts;
  explicit CudaDevice(std::unique_ptr<Parts> parts);
  static Result<std::unique_ptr<CudaDevice>> assemble(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace sangam
