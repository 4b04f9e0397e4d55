// One device of the driver: found, checked for what we need of it, and held as long as anything uses it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "gpu/device/cuda/cuda_driver.hpp"

namespace sangam {

/// Holds the device's primary context. Whatever lies on the device holds this, so it may end in any order.
class CudaContext {
 public:
  /// `ordinal` counts as the driver does, from 0.
  static Result<std::shared_ptr<const CudaContext>> open(std::shared_ptr<const CudaDriver> driver,
                                                         int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  [[nodiscard]] const CudaDriver& driver() const { return *driver_; }
  /// To allocate memory on this device that other processes can be given by file descriptor.
  [[nodiscard]] CUmemAllocationProp allocation() const;
  /// What sizes and addresses of pages must be a multiple of.
  [[nodiscard]] std::size_t granularity() const { return granularity_; }

  /// For the calling thread; before any other call to the driver.
  [[nodiscard]] Result<void> make_current() const;
  [[nodiscard]] Error failure(CUresult code, const char* call, const std::string& asked,
                              const char* remedy) const;

 private:
  CudaContext(std::shared_ptr<const CudaDriver> driver, int ordinal, CUdevice device, CUcontext context);
  Result<void> measure_granularity();

  std::shared_ptr<const CudaDriver> driver_;
  int ordinal_;
  CUdevice device_;
  CUcontext context_;
  std::size_t granularity_ = 0;
};

}  // namespace sangam
