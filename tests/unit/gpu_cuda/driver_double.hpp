// A CUDA driver of memfds and mappings. It holds callers to the driver's rules (CUDA Driver API: "Virtual
// Memory Management", "Stream Management"), says so when one is broken, and fails where it is told to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpu/device/cuda/cuda_driver.hpp"

namespace sangam {

/// The calls that `driver()` hands out must not outlive it. Copies run no earlier than somebody waits for
/// them, so who does not wait sees old bytes. Device memory is visible to this processor, under the access
/// that was set.
class DriverDouble {
 public:
  static constexpr std::size_t kGranularity = 2 << 20;

  struct Machine {
    int devices = 1;
    std::size_t memory = 256 << 20;  ///< Of each device.
    CUdevice_attribute lacks{};      ///< An attribute that answers 0.
  };

  /// `broken` hears of each broken rule; without it, the running test fails.
  using Broken = std::function<void(const std::string&)>;

  DriverDouble() : DriverDouble(Machine{}) {}
  explicit DriverDouble(Machine machine, Broken broken = {});
  ~DriverDouble();
  DriverDouble(const DriverDouble&) = delete;
  DriverDouble& operator=(const DriverDouble&) = delete;

  [[nodiscard]] std::shared_ptr<const CudaDriver> driver() const { return driver_; }

  /// The call after `skipped` more calls is refused with `code` and does nothing. Of `symbol` only, if one is
  /// named.
  void fail_after(std::uint64_t skipped, CUresult code, std::string symbol = "");
  /// What is held now, as "handles 1, mappings 2"; empty when all has been given back.
  [[nodiscard]] std::string held() const;

 private:
  struct Memory {
    int file = -1;
    std::size_t bytes = 0;
  };
  struct Mapping {
    std::size_t bytes = 0;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  };
  struct Copy {
    CUdeviceptr to;
    CUdeviceptr from;
    std::size_t bytes;
  };
  struct Stream {
    std::deque<Copy> waiting;
    std::uint64_t begun = 0;  ///< Copies that were ever put into it.
    std::uint64_t done = 0;
  };
  struct Event {
    CUstream stream = nullptr;
    std::uint64_t until = 0;  ///< Copies of the stream that it stands behind.
  };
  struct Failure {
    std::uint64_t skipped = 0;
    CUresult code = CUDA_SUCCESS;
    std::string symbol;
  };

  /// Reports a broken rule and answers for it.
  CUresult broken(const std::string& what) const;
  template <class Method>
  auto bound(const char* symbol, Method method);
  CUresult refusal(const char* symbol);
  void connect_devices(CudaDriver& driver);
  void connect_memory(CudaDriver& driver);
  void connect_copies(CudaDriver& driver);

  CUresult init(unsigned flags);
  CUresult get_count(int* count);
  CUresult get_device(CUdevice* device, int ordinal);
  CUresult get_attribute(int* value, CUdevice_attribute attribute, CUdevice device);
  CUresult retain_context(CUcontext* context, CUdevice device);
  CUresult release_context(CUdevice device);
  CUresult set_current(CUcontext context);
  CUresult get_info(std::size_t* free, std::size_t* total);

  CUresult get_granularity(std::size_t* bytes, const CUmemAllocationProp* asked,
                           CUmemAllocationGranularity_flags option);
  CUresult reserve(CUdeviceptr* base, std::size_t size, std::size_t alignment, CUdeviceptr hint,
                   unsigned long long flags);
  CUresult free_address(CUdeviceptr base, std::size_t size);
  CUresult create(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp* asked,
                  unsigned long long flags);
  CUresult release(CUmemGenericAllocationHandle handle);
  CUresult map(CUdeviceptr at, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
               unsigned long long flags);
  CUresult unmap(CUdeviceptr at, std::size_t size);
  CUresult set_access(CUdeviceptr at, std::size_t size, const CUmemAccessDesc* wishes, std::size_t count);
  CUresult export_handle(void* descriptor, CUmemGenericAllocationHandle handle,
                         CUmemAllocationHandleType type, unsigned long long flags);
  CUresult import_handle(CUmemGenericAllocationHandle* handle, void* descriptor,
                         CUmemAllocationHandleType type);
  CUresult host_alloc(void** base, std::size_t size, unsigned flags);
  CUresult host_free(void* base);

  CUresult create_stream(CUstream* stream, unsigned flags);
  CUresult destroy_stream(CUstream stream);
  CUresult synchronize_stream(CUstream stream);
  CUresult create_event(CUevent* event, unsigned flags);
  CUresult destroy_event(CUevent event);
  CUresult record(CUevent event, CUstream stream);
  CUresult synchronize_event(CUevent event);
  CUresult copy_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream);

  [[nodiscard]] std::string without_context(const char* symbol) const;
  [[nodiscard]] bool inside_reservation(CUdeviceptr at, std::size_t size) const;
  [[nodiscard]] bool overlaps_mapping(CUdeviceptr at, std::size_t size) const;
  /// Whether [at, at + size) is memory that a copy may use so: mapped with that access, or the host's own.
  [[nodiscard]] bool reachable(CUdeviceptr at, std::size_t size, CUmemAccess_flags access) const;
  CUresult run(Stream& stream, std::uint64_t until);
  template <class Opaque>
  Opaque next_id();

  Machine machine_;
  Broken broken_;
  std::shared_ptr<CudaDriver> driver_;

  mutable std::mutex mutex_;
  bool initialized_ = false;
  std::uint64_t next_ = 1;
  Failure failure_;
  std::map<std::thread::id, CUcontext> current_;
  std::map<CUdevice, int> contexts_;  ///< How often each device's primary context is held.
  std::map<CUdeviceptr, std::size_t> reservations_;
  std::map<CUdeviceptr, Mapping> mappings_;
  std::map<CUmemGenericAllocationHandle, Memory> handles_;
  std::map<void*, std::size_t> host_;
  std::map<CUstream, Stream> streams_;
  std::map<CUevent, Event> events_;
};

}  // namespace sangam
