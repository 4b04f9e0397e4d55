// What every call has in common, the devices and their contexts, streams and events.
#include "tests/unit/gpu_cuda/driver_double.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>

namespace sangam {
namespace {

std::string counted(const char* what, std::size_t count) {
  return count == 0 ? "" : std::string(what) + " " + std::to_string(count) + ", ";
}

CUresult get_error_name(CUresult code, const char** text) {
  *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_DOUBLE";
  return CUDA_SUCCESS;
}

CUresult get_error_string(CUresult code, const char** text) {
  *text = code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error of the double";
  return CUDA_SUCCESS;
}

}  // namespace

DriverDouble::DriverDouble(Machine machine, Broken broken)
    : machine_(machine), broken_(std::move(broken)), driver_(std::make_shared<CudaDriver>()) {
  driver_->get_error_name = get_error_name;
  driver_->get_error_string = get_error_string;
  connect_devices(*driver_);
  connect_memory(*driver_);
  connect_copies(*driver_);
}

DriverDouble::~DriverDouble() {
  if (const std::string rest = held(); !rest.empty()) (void)broken("at the end are still held: " + rest);
}

std::string DriverDouble::held() const {
  const std::lock_guard lock(mutex_);
  std::string held = counted("contexts", contexts_.size()) + counted("reservations", reservations_.size()) +
                     counted("mappings", mappings_.size()) + counted("handles", handles_.size()) +
                     counted("host buffers", host_.size()) + counted("streams", streams_.size()) +
                     counted("events", events_.size());
  return held.empty() ? held : held.substr(0, held.size() - 2);
}

CUresult DriverDouble::broken(const std::string& what) const {
  if (broken_) {
    broken_(what);
  } else {
    ADD_FAIL_CHECK_AT("the driver's double", 0, what);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

void DriverDouble::fail_after(std::uint64_t skipped, CUresult code, std::string symbol) {
  const std::lock_guard lock(mutex_);
  failure_ = {skipped, code, std::move(symbol)};
}

CUresult DriverDouble::refusal(const char* symbol) {
  if (failure_.code == CUDA_SUCCESS || (!failure_.symbol.empty() && failure_.symbol != symbol))
    return CUDA_SUCCESS;
  if (failure_.skipped-- > 0) return CUDA_SUCCESS;
  return std::exchange(failure_.code, CUDA_SUCCESS);
}

std::string DriverDouble::without_context(const char* symbol) const {
  const std::string name(symbol);
  if (name == "cuInit" || name.starts_with("cuDevice") || name == "cuCtxSetCurrent") return "";
  const auto current = current_.find(std::this_thread::get_id());
  if (current != current_.end() &&
      contexts_.contains(CUdevice(reinterpret_cast<std::intptr_t>(current->second) - 1)))
    return "";
  return name + ": no living context is current on this thread";
}

/// The call as the driver hands it out: one at a time, refused where told, under a current context.
template <class Method>
auto DriverDouble::bound(const char* symbol, Method method) {
  return [this, symbol, method](auto... arguments) -> CUresult {
    const std::lock_guard lock(mutex_);
    if (const CUresult code = refusal(symbol); code != CUDA_SUCCESS) return code;
    if (!initialized_ && std::strcmp(symbol, "cuInit") != 0)
      return broken(std::string(symbol) + " before cuInit");
    if (const std::string problem = without_context(symbol); !problem.empty()) return broken(problem);
    return (this->*method)(arguments...);
  };
}

template <class Opaque>
Opaque DriverDouble::next_id() {
  return reinterpret_cast<Opaque>(std::uintptr_t(next_++));
}

void DriverDouble::connect_devices(CudaDriver& driver) {
  driver.init = bound("cuInit", &DriverDouble::init);
  driver.device_get_count = bound("cuDeviceGetCount", &DriverDouble::get_count);
  driver.device_get = bound("cuDeviceGet", &DriverDouble::get_device);
  driver.device_get_attribute = bound("cuDeviceGetAttribute", &DriverDouble::get_attribute);
  driver.primary_ctx_retain = bound("cuDevicePrimaryCtxRetain", &DriverDouble::retain_context);
  driver.primary_ctx_release = bound("cuDevicePrimaryCtxRelease", &DriverDouble::release_context);
  driver.ctx_set_current = bound("cuCtxSetCurrent", &DriverDouble::set_current);
  driver.mem_get_info = bound("cuMemGetInfo", &DriverDouble::get_info);
}

void DriverDouble::connect_memory(CudaDriver& driver) {
  driver.mem_get_granularity = bound("cuMemGetAllocationGranularity", &DriverDouble::get_granularity);
  driver.mem_address_reserve = bound("cuMemAddressReserve", &DriverDouble::reserve);
  driver.mem_address_free = bound("cuMemAddressFree", &DriverDouble::free_address);
  driver.mem_create = bound("cuMemCreate", &DriverDouble::create);
  driver.mem_release = bound("cuMemRelease", &DriverDouble::release);
  driver.mem_map = bound("cuMemMap", &DriverDouble::map);
  driver.mem_unmap = bound("cuMemUnmap", &DriverDouble::unmap);
  driver.mem_set_access = bound("cuMemSetAccess", &DriverDouble::set_access);
  driver.mem_export = bound("cuMemExportToShareableHandle", &DriverDouble::export_handle);
  driver.mem_import = bound("cuMemImportFromShareableHandle", &DriverDouble::import_handle);
  driver.mem_host_alloc = bound("cuMemHostAlloc", &DriverDouble::host_alloc);
  driver.mem_free_host = bound("cuMemFreeHost", &DriverDouble::host_free);
}

void DriverDouble::connect_copies(CudaDriver& driver) {
  driver.stream_create = bound("cuStreamCreate", &DriverDouble::create_stream);
  driver.stream_destroy = bound("cuStreamDestroy", &DriverDouble::destroy_stream);
  driver.stream_synchronize = bound("cuStreamSynchronize", &DriverDouble::synchronize_stream);
  driver.event_create = bound("cuEventCreate", &DriverDouble::create_event);
  driver.event_destroy = bound("cuEventDestroy", &DriverDouble::destroy_event);
  driver.event_record = bound("cuEventRecord", &DriverDouble::record);
  driver.event_synchronize = bound("cuEventSynchronize", &DriverDouble::synchronize_event);
  driver.memcpy_async = bound("cuMemcpyAsync", &DriverDouble::copy_async);
}

CUresult DriverDouble::init(unsigned flags) {
  if (flags != 0) return broken("cuInit: flags must be 0");
  initialized_ = true;
  return machine_.devices == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult DriverDouble::get_count(int* count) {
  *count = machine_.devices;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::get_device(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= machine_.devices)
    return broken("cuDeviceGet: no device " + std::to_string(ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (device >= machine_.devices) return broken("cuDeviceGetAttribute: no such device");
  *value = attribute == machine_.lacks ? 0 : 1;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::retain_context(CUcontext* context, CUdevice device) {
  if (device >= machine_.devices) return broken("cuDevicePrimaryCtxRetain: no such device");
  ++contexts_[device];
  *context = reinterpret_cast<CUcontext>(std::intptr_t(device) + 1);
  return CUDA_SUCCESS;
}

CUresult DriverDouble::release_context(CUdevice device) {
  const auto held = contexts_.find(device);
  if (held == contexts_.end()) return broken("cuDevicePrimaryCtxRelease: nobody holds it");
  if (--held->second > 0) return CUDA_SUCCESS;
  contexts_.erase(held);
  if (!host_.empty() || !streams_.empty() || !events_.empty())
    return broken(
        "cuDevicePrimaryCtxRelease: it takes host buffers, streams or events with it that are in use");
  return CUDA_SUCCESS;
}

CUresult DriverDouble::set_current(CUcontext context) {
  if (!contexts_.contains(CUdevice(reinterpret_cast<std::intptr_t>(context) - 1)))
    return broken("cuCtxSetCurrent: no such context");
  current_[std::this_thread::get_id()] = context;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::get_info(std::size_t* free, std::size_t* total) {
  std::size_t used = 0;
  for (const auto& [handle, memory] : handles_) used += memory.bytes;
  *total = machine_.memory;
  *free = used > machine_.memory ? 0 : machine_.memory - used;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::create_stream(CUstream* stream, unsigned flags) {
  if (flags != CU_STREAM_NON_BLOCKING)
    return broken("cuStreamCreate: this stream would wait for the default stream");
  *stream = next_id<CUstream>();
  streams_[*stream] = {};
  return CUDA_SUCCESS;
}

CUresult DriverDouble::destroy_stream(CUstream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return broken("cuStreamDestroy: no such stream");
  const bool idle = found->second.waiting.empty();
  streams_.erase(found);
  return idle ? CUDA_SUCCESS : broken("cuStreamDestroy: copies are still under way");
}

CUresult DriverDouble::synchronize_stream(CUstream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return broken("cuStreamSynchronize: no such stream");
  return run(found->second, found->second.begun);
}

CUresult DriverDouble::create_event(CUevent* event, unsigned) {
  *event = next_id<CUevent>();
  events_[*event] = {};
  return CUDA_SUCCESS;
}

CUresult DriverDouble::destroy_event(CUevent event) {
  return events_.erase(event) == 1 ? CUDA_SUCCESS : broken("cuEventDestroy: no such event");
}

CUresult DriverDouble::record(CUevent event, CUstream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || !events_.contains(event))
    return broken("cuEventRecord: no such stream or event");
  events_[event] = {stream, found->second.begun};
  return CUDA_SUCCESS;
}

CUresult DriverDouble::synchronize_event(CUevent event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return broken("cuEventSynchronize: no such event");
  const auto stream = streams_.find(found->second.stream);
  if (stream == streams_.end()) return broken("cuEventSynchronize: the event was never recorded");
  return run(stream->second, found->second.until);
}

CUresult DriverDouble::copy_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return broken("cuMemcpyAsync: no such stream");
  if (!reachable(to, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ||
      !reachable(from, bytes, CU_MEM_ACCESS_FLAGS_PROT_READ)) {
    return CUDA_ERROR_INVALID_VALUE;  // The world's no: whoever imports for reading finds it here.
  }
  found->second.waiting.push_back({to, from, bytes});
  ++found->second.begun;
  return CUDA_SUCCESS;
}

CUresult DriverDouble::run(Stream& stream, std::uint64_t until) {
  for (; stream.done < until; ++stream.done) {
    const Copy copy = stream.waiting.front();
    stream.waiting.pop_front();
    if (!reachable(copy.to, copy.bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ||
        !reachable(copy.from, copy.bytes, CU_MEM_ACCESS_FLAGS_PROT_READ)) {
      return broken("memory was unmapped while a copy was under way");
    }
    std::memcpy(reinterpret_cast<void*>(copy.to), reinterpret_cast<const void*>(copy.from), copy.bytes);
  }
  return CUDA_SUCCESS;
}

}  // namespace sangam
