// Opens the driver's library, so that one binary serves machines with and without a driver.
#include "gpu/device/cuda/cuda_driver.hpp"

#include <dlfcn.h>

#include <string>

namespace sangam {
namespace {

template <class Signature>
bool find(void* library, const char* symbol, CudaDriver::Call<Signature>& call) {
  auto* found = reinterpret_cast<Signature*>(dlsym(library, symbol));
  if (found != nullptr) call = found;
  return found != nullptr;
}

}  // namespace

Result<std::shared_ptr<const CudaDriver>> load_cuda_driver(const char* library) {
  // Never closed: the driver has threads and exit handlers of its own.
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    return make_error(ErrorCode::unavailable, std::string("no CUDA driver: ") + dlerror() +
                                                  "; install the NVIDIA driver, or use the CPU device");
  }
  auto driver = std::make_shared<CudaDriver>();
  std::string missing;
  for_each_call(*driver, [&](auto& call, const char* symbol) {
    if (!find(opened, symbol, call)) missing += std::string(missing.empty() ? "" : ", ") + symbol;
  });
  if (!missing.empty()) {
    return make_error(ErrorCode::unavailable, std::string("the CUDA driver ") + library + " lacks " +
                                                  missing + "; install one for CUDA 11.3 or newer");
  }
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

}  // namespace sangam
