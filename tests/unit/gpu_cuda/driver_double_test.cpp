// The double is only worth as much as what it notices: each rule of the driver, broken once.
#include "tests/unit/gpu_cuda/driver_double.hpp"

#include <doctest/doctest.h>

#include <array>
#include <thread>

#include "gpu/device/file_descriptor.hpp"

using namespace sangam;

namespace {

constexpr std::size_t kPage = DriverDouble::kGranularity;

/// A driver with a context current, and what it has to complain of.
struct Watched {
  std::vector<std::string> complaints;
  DriverDouble machine{{}, [this](const std::string& what) { complaints.push_back(what); }};
  CudaDriver cuda = *machine.driver();
  CUmemAllocationProp asked{};
  CUmemAccessDesc wish{};
  CUmemGenericAllocationHandle handle{};
  CUdeviceptr base = 0;

  Watched() {
    CUcontext context = nullptr;
    asked.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    asked.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    asked.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    wish.location = asked.location;
    wish.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    REQUIRE(cuda.init(0) == CUDA_SUCCESS);
    REQUIRE(cuda.primary_ctx_retain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(cuda.ctx_set_current(context) == CUDA_SUCCESS);
    REQUIRE(cuda.mem_create(&handle, kPage, &asked, 0) == CUDA_SUCCESS);
    REQUIRE(cuda.mem_address_reserve(&base, 2 * kPage, kPage, 0, 0) == CUDA_SUCCESS);
  }

  /// What the double complained of in this call, if it also refused it.
  std::string complaint(CUresult code) {
    const std::string last = complaints.empty() || code == CUDA_SUCCESS ? "" : complaints.back();
    complaints.clear();
    return last;
  }
};

}  // namespace

TEST_CASE("the double notices sizes and addresses off the granularity") {
  Watched w;
  CUmemGenericAllocationHandle other{};
  CUdeviceptr range = 0;
  CHECK(w.complaint(w.cuda.mem_create(&other, kPage + 4096, &w.asked, 0)).starts_with("cuMemCreate: size"));
  CHECK(w.complaint(w.cuda.mem_address_reserve(&range, 4096, 0, 0, 0))
            .starts_with("cuMemAddressReserve: size"));
  CHECK(w.complaint(w.cuda.mem_map(w.base + 4096, kPage, 0, w.handle, 0)).starts_with("cuMemMap: address"));
  w.asked.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  CHECK(w.complaint(w.cuda.mem_create(&other, kPage, &w.asked, 0)).find("can be exported") !=
        std::string::npos);
}

TEST_CASE("the double notices mappings outside a reservation, from an offset, and on top of each other") {
  Watched w;
  CHECK(w.complaint(w.cuda.mem_map(w.base + 2 * kPage, kPage, 0, w.handle, 0)) ==
        "cuMemMap: the range is not reserved");
  CHECK(w.complaint(w.cuda.mem_map(w.base, kPage, kPage, w.handle, 0)) ==
        "cuMemMap: address, offset or flags");
  CHECK(w.complaint(w.cuda.mem_map(w.base, kPage, 0, w.handle + 1000, 0)) == "cuMemMap: no such handle");
  REQUIRE(w.cuda.mem_map(w.base, kPage, 0, w.handle, 0) == CUDA_SUCCESS);
  CHECK(w.complaint(w.cuda.mem_map(w.base, kPage, 0, w.handle, 0)) ==
        "cuMemMap: something is mapped there already");
  CHECK(w.cuda.mem_map(w.base + kPage, kPage, 0, w.handle, 0) == CUDA_SUCCESS);  // A second time, elsewhere.
}

TEST_CASE("the double notices what is unmapped twice, in part, or freed too early") {
  Watched w;
  REQUIRE(w.cuda.mem_map(w.base, kPage, 0, w.handle, 0) == CUDA_SUCCESS);
  CHECK(w.complaint(w.cuda.mem_unmap(w.base, kPage / 2)) == "cuMemUnmap: not a range as it was mapped");
  CHECK(w.complaint(w.cuda.mem_address_free(w.base, 2 * kPage)) ==
        "cuMemAddressFree: something is still mapped there");
  CHECK(w.cuda.mem_unmap(w.base, kPage) == CUDA_SUCCESS);
  CHECK(w.complaint(w.cuda.mem_unmap(w.base, kPage)) == "cuMemUnmap: not a range as it was mapped");
  CHECK(w.complaint(w.cuda.mem_address_free(w.base, kPage)) ==
        "cuMemAddressFree: not a range as it was reserved");
  CHECK(w.cuda.mem_release(w.handle) == CUDA_SUCCESS);
  CHECK(w.complaint(w.cuda.mem_release(w.handle)) == "cuMemRelease: no such handle");
}

TEST_CASE("the double notices access that is set beyond what is mapped, and copies without access") {
  Watched w;
  CUstream stream = nullptr;
  REQUIRE(w.cuda.stream_create(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(w.cuda.mem_map(w.base, kPage, 0, w.handle, 0) == CUDA_SUCCESS);
  CHECK(w.complaint(w.cuda.mem_set_access(w.base, 2 * kPage, &w.wish, 1)).find("not all mapped") !=
        std::string::npos);
  std::array<char, 8> bytes{};
  const auto host = CUdeviceptr(reinterpret_cast<std::uintptr_t>(bytes.data()));
  CHECK(w.cuda.memcpy_async(host, w.base, 8, stream) == CUDA_ERROR_INVALID_VALUE);
  w.wish.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  REQUIRE(w.cuda.mem_set_access(w.base, kPage, &w.wish, 1) == CUDA_SUCCESS);
  CHECK(w.cuda.memcpy_async(w.base, host, 8, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(w.cuda.memcpy_async(host, w.base + kPage - 4, 8, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(w.cuda.memcpy_async(host, w.base, 8, stream) == CUDA_SUCCESS);
  REQUIRE(w.cuda.mem_unmap(w.base, kPage) == CUDA_SUCCESS);
  CHECK(w.complaint(w.cuda.stream_synchronize(stream)) == "memory was unmapped while a copy was under way");
}

TEST_CASE("the double notices a descriptor that is passed by pointer instead of by value") {
  Watched w;
  int descriptor = -1;
  REQUIRE(w.cuda.mem_export(&descriptor, w.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
          CUDA_SUCCESS);
  CUmemGenericAllocationHandle other{};
  CHECK(w.complaint(w.cuda.mem_import(&other, &descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
            .find("no descriptor's number") != std::string::npos);
  CHECK(w.cuda.mem_import(&other, reinterpret_cast<void*>(std::intptr_t(descriptor)),
                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_SUCCESS);
  const FileDescriptor closed_at_the_end(descriptor);
}

TEST_CASE("the double notices calls on a thread without a context, and before the driver is initialized") {
  Watched w;
  CUresult code = CUDA_SUCCESS;
  std::jthread([&] {
    CUmemGenericAllocationHandle other{};
    code = w.cuda.mem_create(&other, kPage, &w.asked, 0);
  }).join();
  CHECK(w.complaint(code) == "cuMemCreate: no living context is current on this thread");

  std::string early;
  DriverDouble asleep({}, [&](const std::string& what) { early = what; });
  int count = 0;
  CHECK(asleep.driver()->device_get_count(&count) != CUDA_SUCCESS);
  CHECK(early == "cuDeviceGetCount before cuInit");
}

TEST_CASE("a copy of the double is done when it is waited for, no earlier, and only up to the event") {
  Watched w;
  CUstream stream = nullptr;
  CUevent first = nullptr;
  std::array<char, 3> bytes{'a', 'b', 'c'};
  const auto at = [&](std::size_t i) { return CUdeviceptr(reinterpret_cast<std::uintptr_t>(&bytes[i])); };
  REQUIRE(w.cuda.stream_create(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(w.cuda.event_create(&first, 0) == CUDA_SUCCESS);
  REQUIRE(w.cuda.memcpy_async(at(1), at(0), 1, stream) == CUDA_SUCCESS);
  REQUIRE(w.cuda.event_record(first, stream) == CUDA_SUCCESS);
  REQUIRE(w.cuda.memcpy_async(at(2), at(1), 1, stream) == CUDA_SUCCESS);
  CHECK(std::string(bytes.data(), 3) == "abc");
  REQUIRE(w.cuda.event_synchronize(first) == CUDA_SUCCESS);
  CHECK(std::string(bytes.data(), 3) == "aac");
  CHECK(w.complaint(w.cuda.stream_destroy(stream)) == "cuStreamDestroy: copies are still under way");
  CHECK(w.complaints.empty());
  CHECK(w.cuda.event_destroy(first) == CUDA_SUCCESS);
}

TEST_CASE("the double tells what is still held when it ends") {
  std::vector<std::string> complaints;
  {
    DriverDouble machine({}, [&](const std::string& what) { complaints.push_back(what); });
    CUcontext context = nullptr;
    REQUIRE(machine.driver()->init(0) == CUDA_SUCCESS);
    REQUIRE(machine.driver()->primary_ctx_retain(&context, 0) == CUDA_SUCCESS);
  }
  CHECK(complaints == std::vector<std::string>{"at the end are still held: contexts 1"});
}
