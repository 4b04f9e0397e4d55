// The calls of the CUDA driver that this back end makes, as values: the real ones come from the driver's
// library, which is opened at run time; a test puts its own in their place.
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>

#include "messages/vocabulary/result.hpp"

namespace sangam {

/// Each member is the driver call of that name, with its signature and its rules. From any thread.
struct CudaDriver {
  template <class Signature>
  using Call = std::function<Signature>;

  Call<decltype(cuGetErrorName)> get_error_name;
  Call<decltype(cuGetErrorString)> get_error_string;

  Call<decltype(cuInit)> init;
  Call<decltype(cuDeviceGetCount)> device_get_count;
  Call<decltype(cuDeviceGet)> device_get;
  Call<decltype(cuDeviceGetAttribute)> device_get_attribute;
  Call<decltype(cuDevicePrimaryCtxRetain)> primary_ctx_retain;
  Call<decltype(cuDevicePrimaryCtxRelease)> primary_ctx_release;
  Call<decltype(cuCtxSetCurrent)> ctx_set_current;
  Call<decltype(cuMemGetInfo)> mem_get_info;

  Call<decltype(cuMemGetAllocationGranularity)> mem_get_granularity;
  Call<decltype(cuMemAddressReserve)> mem_address_reserve;
  Call<decltype(cuMemAddressFree)> mem_address_free;
  Call<decltype(cuMemCreate)> mem_create;
  Call<decltype(cuMemRelease)> mem_release;
  Call<decltype(cuMemMap)> mem_map;
  Call<decltype(cuMemUnmap)> mem_unmap;
  Call<decltype(cuMemSetAccess)> mem_set_access;
  Call<decltype(cuMemExportToShareableHandle)> mem_export;
  Call<decltype(cuMemImportFromShareableHandle)> mem_import;

  Call<decltype(cuMemHostAlloc)> mem_host_alloc;
  Call<decltype(cuMemFreeHost)> mem_free_host;

  Call<decltype(cuStreamCreate)> stream_create;
  Call<decltype(cuStreamDestroy)> stream_destroy;
  Call<decltype(cuStreamSynchronize)> stream_synchronize;
  Call<decltype(cuEventCreate)> event_create;
  Call<decltype(cuEventDestroy)> event_destroy;
  Call<decltype(cuEventRecord)> event_record;
  Call<decltype(cuEventSynchronize)> event_synchronize;
  Call<decltype(cuMemcpyAsync)> memcpy_async;
};

// The header renames calls by macro to the version that it declares; the library's symbol is that version's.
#define SANGAM_CUDA_TEXT(call) #call
#define SANGAM_CUDA_SYMBOL(call) SANGAM_CUDA_TEXT(call)

/// Shows `visit(call, symbol)` every call of `driver`.
template <class Visit>
void for_each_call(CudaDriver& driver, Visit&& visit) {
  visit(driver.get_error_name, SANGAM_CUDA_SYMBOL(cuGetErrorName));
  visit(driver.get_error_string, SANGAM_CUDA_SYMBOL(cuGetErrorString));
  visit(driver.init, SANGAM_CUDA_SYMBOL(cuInit));
  visit(driver.device_get_count, SANGAM_CUDA_SYMBOL(cuDeviceGetCount));
  visit(driver.device_get, SANGAM_CUDA_SYMBOL(cuDeviceGet));
  visit(driver.device_get_attribute, SANGAM_CUDA_SYMBOL(cuDeviceGetAttribute));
  visit(driver.primary_ctx_retain, SANGAM_CUDA_SYMBOL(cuDevicePrimaryCtxRetain));
  visit(driver.primary_ctx_release, SANGAM_CUDA_SYMBOL(cuDevicePrimaryCtxRelease));
  visit(driver.ctx_set_current, SANGAM_CUDA_SYMBOL(cuCtxSetCurrent));
  visit(driver.mem_get_info, SANGAM_CUDA_SYMBOL(cuMemGetInfo));
  visit(driver.mem_get_granularity, SANGAM_CUDA_SYMBOL(cuMemGetAllocationGranularity));
  visit(driver.mem_address_reserve, SANGAM_CUDA_SYMBOL(cuMemAddressReserve));
  visit(driver.mem_address_free, SANGAM_CUDA_SYMBOL(cuMemAddressFree));
  visit(driver.mem_create, SANGAM_CUDA_SYMBOL(cuMemCreate));
  visit(driver.mem_release, SANGAM_CUDA_SYMBOL(cuMemRelease));
  visit(driver.mem_map, SANGAM_CUDA_SYMBOL(cuMemMap));
  visit(driver.mem_unmap, SANGAM_CUDA_SYMBOL(cuMemUnmap));
  visit(driver.mem_set_access, SANGAM_CUDA_SYMBOL(cuMemSetAccess));
  visit(driver.mem_export, SANGAM_CUDA_SYMBOL(cuMemExportToShareableHandle));
  visit(driver.mem_import, SANGAM_CUDA_SYMBOL(cuMemImportFromShareableHandle));
  visit(driver.mem_host_alloc, SANGAM_CUDA_SYMBOL(cuMemHostAlloc));
  visit(driver.mem_free_host, SANGAM_CUDA_SYMBOL(cuMemFreeHost));
  visit(driver.stream_create, SANGAM_CUDA_SYMBOL(cuStreamCreate));
  visit(driver.stream_destroy, SANGAM_CUDA_SYMBOL(cuStreamDestroy));
  visit(driver.stream_synchronize, SANGAM_CUDA_SYMBOL(cuStreamSynchronize));
  visit(driver.event_create, SANGAM_CUDA_SYMBOL(cuEventCreate));
  visit(driver.event_destroy, SANGAM_CUDA_SYMBOL(cuEventDestroy));
  visit(driver.event_record, SANGAM_CUDA_SYMBOL(cuEventRecord));
  visit(driver.event_synchronize, SANGAM_CUDA_SYMBOL(cuEventSynchronize));
  visit(driver.memcpy_async, SANGAM_CUDA_SYMBOL(cuMemcpyAsync));
}

#undef SANGAM_CUDA_SYMBOL
#undef SANGAM_CUDA_TEXT

/// The machine's own driver. `unavailable` where the library is not installed or lacks one of the calls.
Result<std::shared_ptr<const CudaDriver>> load_cuda_driver(const char* library = "libcuda.so.1");

}  // namespace sangam
