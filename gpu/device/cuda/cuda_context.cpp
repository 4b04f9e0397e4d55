// What the driver says no to becomes an Error with the call, its numbers, the driver's words and a remedy.
#include "gpu/device/cuda/cuda_context.hpp"

namespace sangam {
namespace {

ErrorCode error_code(CUresult code) {
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_OPERATING_SYSTEM:  // in practice, no more file descriptors
      return ErrorCode::exhausted;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_NOT_SUPPORTED: return ErrorCode::unavailable;
    default: return ErrorCode::internal;
  }
}

Error described(const CudaDriver& driver, CUresult code, const std::string& what, const char* remedy) {
  const char* name = "a code that the driver does not name";
  const char* text = "no description";
  (void)driver.get_error_name(code, &name);
  (void)driver.get_error_string(code, &text);
  return make_error(error_code(code),
                    what + ": " + text + " (" + name + ", " + std::to_string(int(code)) + "); " + remedy);
}

struct Need {
  CUdevice_attribute attribute;
  const char* what;
};
constexpr Need kNeeds[] = {
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "one address space with the host"},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management"},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "sharing by file descriptor"},
};

Result<CUdevice> find_device(const CudaDriver& driver, int ordinal) {
  const std::string who = "cuda device " + std::to_string(ordinal);
  if (const CUresult code = driver.init(0); code != CUDA_SUCCESS)
    return described(driver, code, who + ": cuInit(0)", "check that the driver serves with nvidia-smi");
  int count = 0;
  if (const CUresult code = driver.device_get_count(&count); code != CUDA_SUCCESS)
    return described(driver, code, who + ": cuDeviceGetCount()", "check the driver with nvidia-smi");
  if (ordinal < 0 || ordinal >= count) {
    return make_error(ErrorCode::unavailable, who + ": this machine shows " + std::to_string(count) +
                                                  " devices, counted from 0; name one of them");
  }
  CUdevice device = 0;
  if (const CUresult code = driver.device_get(&device, ordinal); code != CUDA_SUCCESS)
    return described(driver, code, who + ": cuDeviceGet()", "check the driver with nvidia-smi");
  for (const Need& need : kNeeds) {
    int has = 0;
    if (const CUresult code = driver.device_get_attribute(&has, need.attribute, device); code != CUDA_SUCCESS)
      return described(driver, code, who + ": cuDeviceGetAttribute(" + need.what + ")", "check the driver");
    if (has == 0) {
      return make_error(ErrorCode::unavailable,
                        who + " lacks " + need.what + "; use another device, or the CPU device");
    }
  }
  return device;
}

}  // namespace

Result<std::shared_ptr<const CudaContext>> CudaContext::open(std::shared_ptr<const CudaDriver> driver,
                                                             int ordinal) {
  const auto device = find_device(*driver, ordinal);
  if (!device) return device.error();
  CUcontext context = nullptr;
  if (const CUresult code = driver->primary_ctx_retain(&context, *device); code != CUDA_SUCCESS) {
    return described(*driver, code, "cuda device " + std::to_string(ordinal) + ": cuDevicePrimaryCtxRetain()",
                     "stop what else uses the device, or use another one");
  }
  auto opened = std::shared_ptr<CudaContext>(new CudaContext(std::move(driver), ordinal, *device, context));
  if (auto measured = opened->measure_granularity(); !measured) return measured.error();
  return std::shared_ptr<const CudaContext>(std::move(opened));
}

CudaContext::CudaContext(std::shared_ptr<const CudaDriver> driver, int ordinal, CUdevice device,
                         CUcontext context)
    : driver_(std::move(driver)), ordinal_(ordinal), device_(device), context_(context) {}

CudaContext::~CudaContext() {
  (void)driver_->primary_ctx_release(device_);
}

Result<void> CudaContext::measure_granularity() {
  if (auto current = make_current(); !current) return current.error();
  const CUmemAllocationProp asked = allocation();
  const CUresult code = driver_->mem_get_granularity(&granularity_, &asked, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (code != CUDA_SUCCESS) return failure(code, "cuMemGetAllocationGranularity", "", "check the driver");
  return {};
}

CUmemAllocationProp CudaContext::allocation() const {
  CUmemAllocationProp asked{};
  asked.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  asked.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  asked.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  asked.location.id = device_;
  return asked;
}

Result<void> CudaContext::make_current() const {
  if (const CUresult code = driver_->ctx_set_current(context_); code != CUDA_SUCCESS)
    return failure(code, "cuCtxSetCurrent", "", "restart the process: its context is lost");
  return {};
}

Error CudaContext::failure(CUresult code, const char* call, const std::string& asked,
                           const char* remedy) const {
  return described(*driver_, code,
                   "cuda device " + std::to_string(ordinal_) + ": " + call + "(" + asked + ")", remedy);
}

}  // namespace sangam
