// What a CUDA device does beyond what every device does, and what it says when the driver says no.
#include "gpu/device/cuda/cuda_device.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "gpu/device/cuda/device_memory.hpp"
#include "tests/unit/gpu_device/device_behaviours.hpp"
#include "tests/unit/gpu_cuda/driver_double.hpp"

using namespace sangam;

namespace {

constexpr std::int64_t kPage = 2 << 20;

CudaDeviceOptions pool_of(std::int64_t pages, int ordinal = 0) {
  return {.ordinal = ordinal, .size = Bytes(pages * kPage), .page = Bytes(kPage)};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Mappings of device memory in this process, as the kernel tells.
int kernel_mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += contains(line, "double-device");
  return count;
}

std::vector<SharedPages> one_file(int file, std::size_t bytes, std::uint64_t offset = 0) {
  std::vector<SharedPages> shared;
  shared.push_back({FileDescriptor(file), offset, bytes});
  return shared;
}

}  // namespace

// A mapping has one owner and ends once: there is no second one that could unmap it again.
static_assert(!std::is_copy_constructible_v<DeviceRange> && !std::is_copy_assignable_v<DeviceRange>);
static_assert(!std::is_copy_constructible_v<PhysicalPages> && !std::is_copy_assignable_v<PhysicalPages>);
static_assert(!std::is_move_assignable_v<PhysicalPages> && !std::is_move_constructible_v<DeviceRange>);

TEST_CASE("when all has ended, nothing is held, in whatever order it ends") {
  DriverDouble machine;
  std::unique_ptr<PageSpan> span;
  std::unique_ptr<HostBuffer> buffer;
  {
    auto device = CudaDevice::create(machine.driver(), pool_of(3)).value();
    number_pages(*device);
    const PageExtent last{PageId{2}, Pages{1}};
    span = device->map({&last, 1}, Access::read).value();
    buffer = device->host_buffer(Bytes{100}).value();
    CHECK(kernel_mappings() == 4);
  }
  CHECK(machine.held() == "contexts 1, reservations 1, mappings 1, host buffers 1");
  CHECK(std::memcmp(span->bytes().data(), pattern(2, kPage).data(), kPage) ==
        0);  // The double's memory is the host's.
  buffer.reset();
  span.reset();
  CHECK(machine.held() == "");
  CHECK(kernel_mappings() == 0);
}

TEST_CASE("a processor that writes to a span for reading dies by SIGSEGV") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), pool_of(2)).value();
  const PageExtent all{PageId{0}, Pages{2}};
  auto span = device->map({&all, 1}, Access::read).value();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    *reinterpret_cast<volatile char*>(span->bytes().data()) = 1;
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("a copy to a span for reading is refused and changes nothing") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), pool_of(2)).value();
  number_pages(*device);
  const PageExtent first{PageId{0}, Pages{1}};
  auto span = device->map({&first, 1}, Access::read).value();
  const CopyPiece piece{span->bytes().data(), device->arena().at(PageId{1}), kPage};
  const auto copied = device->copy({&piece, 1});
  REQUIRE(!copied);
  CHECK(contains(copied.error().context, "cuMemcpyAsync(piece 0 of 1, 2097152 bytes)"));
  CHECK(read_from(*device, page_of(*device, 0)) == pattern(0, kPage));
}

TEST_CASE("a copy that fails half way returns only when nothing of it is under way") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), pool_of(3)).value();
  number_pages(*device);
  for (const char* call : {"cuMemcpyAsync", "cuEventRecord", "cuEventSynchronize"}) {
    CAPTURE(call);
    auto buffer = device->host_buffer(Bytes{3 * kPage}).value();
    std::vector<CopyPiece> pieces;
    for (std::uint32_t page = 0; page < 3; ++page)
      pieces.push_back({buffer->bytes().data() + page * kPage, device->arena().at(PageId{page}), kPage});
    machine.fail_after(std::string(call) == "cuMemcpyAsync" ? 2 : 0, CUDA_ERROR_LAUNCH_FAILED, call);
    const auto copied = device->copy(pieces);
    REQUIRE(!copied);
    CHECK(contains(copied.error().context, call));
    // The double copies when somebody waits: these bytes are there because `copy` did.
    CHECK(std::memcmp(buffer->bytes().data(), pattern(0, kPage).data(), kPage) == 0);
    CHECK(std::memcmp(buffer->bytes().data() + kPage, pattern(1, kPage).data(), kPage) == 0);
  }
  CHECK(read_from(*device, page_of(*device, 2)) == pattern(2, kPage));  // The lanes serve on.
}

TEST_CASE("an error names device, call, numbers, the driver's words and a remedy") {
  DriverDouble machine;
  machine.fail_after(2, CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate");
  const auto device = CudaDevice::create(machine.driver(), pool_of(4));
  REQUIRE(!device);
  CHECK(device.error().code == ErrorCode::exhausted);
  CHECK(device.error().context ==
        "cuda device 0: cuMemCreate(page 2 of 4, 2097152 bytes): out of memory (CUDA_ERROR_OUT_OF_MEMORY, "
        "2); make "
        "the pool smaller, or stop what else uses the device");
}

TEST_CASE("a pool larger than what the device has free is refused before anything is taken") {
  DriverDouble machine({.memory = 8 * kPage});
  auto first = CudaDevice::create(machine.driver(), pool_of(5)).value();
  const auto second = CudaDevice::create(machine.driver(), pool_of(4));
  REQUIRE(!second);
  CHECK(second.error().code == ErrorCode::exhausted);
  CHECK(contains(second.error().context, "6291456 are free"));
  CHECK(CudaDevice::create(machine.driver(), pool_of(3)));
}

TEST_CASE("page sizes that are no multiple of the granularity, and pools without a page, are refused") {
  DriverDouble machine;
  for (const std::int64_t page : {std::int64_t{0}, std::int64_t{-2097152}, kPage / 2, kPage + 4096}) {
    CAPTURE(page);
    const auto device =
        CudaDevice::create(machine.driver(), {.ordinal = 0, .size = Bytes(8 * kPage), .page = Bytes(page)});
    REQUIRE(!device);
    CHECK(device.error().code == ErrorCode::invalid_input);
  }
  CHECK_FALSE(CudaDevice::create(machine.driver(), pool_of(0)));
  const auto device = CudaDevice::create(
      machine.driver(), {.ordinal = 0, .size = Bytes(9 * kPage - 1), .page = Bytes(2 * kPage)});
  REQUIRE(device);
  CHECK((*device)->pages() == Pages{4});
  CHECK((*device)->arena().page_bytes == 2 * kPage);
}

TEST_CASE("a machine without a device, a wrong number and a device that lacks what we need are told apart") {
  DriverDouble none({.devices = 0});
  const auto on_none = CudaDevice::create(none.driver(), pool_of(1));
  REQUIRE(!on_none);
  CHECK(on_none.error().code == ErrorCode::unavailable);
  CHECK(contains(on_none.error().context, "cuInit(0)"));

  DriverDouble two({.devices = 2});
  CHECK(CudaDevice::create(two.driver(), pool_of(1, 1)));
  for (const int ordinal : {-1, 2}) {
    const auto wrong = CudaDevice::create(two.driver(), pool_of(1, ordinal));
    REQUIRE(!wrong);
    CHECK(contains(wrong.error().context, "shows 2 devices"));
  }

  DriverDouble old({.lacks = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED});
  const auto on_old = CudaDevice::create(old.driver(), pool_of(1));
  REQUIRE(!on_old);
  CHECK(on_old.error().code == ErrorCode::unavailable);
  CHECK(contains(on_old.error().context, "lacks virtual memory management"));
}

TEST_CASE("shared pages of another size, from an offset, or of a file that is no device memory are refused") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), pool_of(2)).value();
  const PageExtent first{PageId{0}, Pages{1}};
  const std::string before = machine.held();

  auto wrong_size = device->share({&first, 1}).value();
  wrong_size[0].bytes = 2 * kPage;
  CHECK_FALSE(device->import(wrong_size, Access::read));
  wrong_size[0].bytes = kPage - 4096;
  CHECK_FALSE(device->import(wrong_size, Access::read));

  auto from_offset = device->share({&first, 1}).value();
  from_offset[0].offset = kPage;
  const auto refused = device->import(from_offset, Access::read);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::invalid_input);

  const int foreign = memfd_create("not-of-the-device", MFD_CLOEXEC);
  REQUIRE(ftruncate(foreign, kPage) == 0);
  CHECK_FALSE(device->import(one_file(foreign, kPage), Access::read));
  CHECK_FALSE(device->import(one_file(-1, kPage), Access::read));
  CHECK(machine.held() == before);
}

TEST_CASE("a driver's library that is not there is told by name, with a remedy") {
  const auto driver = load_cuda_driver("libcuda-of-no-machine.so.1");
  REQUIRE(!driver);
  CHECK(driver.error().code == ErrorCode::unavailable);
  CHECK(contains(driver.error().context, "libcuda-of-no-machine.so.1"));
  CHECK(contains(driver.error().context, "install the NVIDIA driver"));
}

TEST_CASE("a library that is no driver is refused with the calls that it lacks") {
  const auto driver = load_cuda_driver("libm.so.6");
  REQUIRE(!driver);
  CHECK(contains(driver.error().context, "cuMemSetAccess"));
}

#ifdef SANGAM_CUDA_STUB
TEST_CASE("every call is found in the toolkit's own list of the driver's symbols") {
  if (access(SANGAM_CUDA_STUB, R_OK) != 0) {
    MESSAGE("skipped: this machine has no toolkit at " SANGAM_CUDA_STUB);
    return;
  }
  const auto driver = load_cuda_driver(SANGAM_CUDA_STUB);
  REQUIRE(driver);
  const auto device = CudaDevice::create(*driver, pool_of(1));
  REQUIRE(!device);  // The stub can be linked with, and no more.
  CHECK(device.error().code == ErrorCode::unavailable);
}
#endif
