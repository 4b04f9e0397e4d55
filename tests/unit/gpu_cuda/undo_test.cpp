// Every step can fail, and then all is as it was before: shown for the failure of each single call of the
// driver.
#include <dirent.h>
#include <doctest/doctest.h>

#include "gpu/device/cuda/cuda_device.hpp"
#include "tests/unit/gpu_device/device_behaviours.hpp"
#include "tests/unit/gpu_cuda/driver_double.hpp"

using namespace sangam;

namespace {

constexpr std::int64_t kPage = 2 << 20;
constexpr CudaDeviceOptions kPool{.ordinal = 0, .size = Bytes(6 * kPage), .page = Bytes(kPage)};

int open_files() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

/// Lets call 0, 1, 2 ... of `step` fail until it succeeds all the same; the number of calls that it needs.
template <class Step>
std::uint64_t fails_at_every_call(DriverDouble& machine, Step step) {
  const std::string held = machine.held();
  const int files = open_files();
  for (std::uint64_t call = 0;; ++call) {
    CAPTURE(call);
    REQUIRE(call < 1000);
    machine.fail_after(call, CUDA_ERROR_OUT_OF_MEMORY);
    {
      const auto done = step();
      machine.fail_after(0, CUDA_SUCCESS);  // What was got lets go undisturbed.
      if (done) return call;
      CHECK(done.error().code == ErrorCode::exhausted);
      CHECK(done.error().context.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
    }
    CHECK(machine.held() == held);
    CHECK(open_files() == files);
  }
}

}  // namespace

TEST_CASE("making a device fails at any call with nothing left behind") {
  DriverDouble machine;
  // Find: init, count, get, 3 attributes. Hold: retain, current, granularity. Measure: current, info. Pages:
  // current, 6 creates. Arena: current, reserve, 6 maps, access. Lanes: current, 4 streams, 4 events.
  CHECK(fails_at_every_call(machine, [&] { return CudaDevice::create(machine.driver(), kPool); }) == 36);
  CHECK(machine.held() == "");
}

TEST_CASE("adopting a device fails at any call with nothing left behind") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), kPool).value();
  const PageExtent all{PageId{0}, Pages{6}};
  const auto shared = device->share({&all, 1}).value();
  // As for making one, without the two calls that measure.
  CHECK(fails_at_every_call(machine, [&] { return CudaDevice::adopt(machine.driver(), 0, shared); }) == 34);
}

TEST_CASE("mapping pages fails at any call with nothing left behind") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), kPool).value();
  const PageExtent some[] = {{PageId{4}, Pages{2}}, {PageId{0}, Pages{1}}};
  CHECK(fails_at_every_call(machine, [&] { return device->map(some, Access::read); }) == 1 + 1 + 3 + 1);
}

TEST_CASE("sharing pages fails at any call with no descriptor left behind") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), kPool).value();
  const PageExtent some[] = {{PageId{1}, Pages{3}}, {PageId{0}, Pages{1}}};
  CHECK(fails_at_every_call(machine, [&] { return device->share(some); }) == 1 + 4);
}

TEST_CASE("importing pages fails at any call with nothing left behind") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), kPool).value();
  const PageExtent some{PageId{1}, Pages{4}};
  const auto shared = device->share({&some, 1}).value();
  CHECK(fails_at_every_call(machine, [&] { return device->import(shared, Access::read); }) ==
        (1 + 4) + (1 + 1 + 4 + 1));
}

TEST_CASE("a host buffer and a copy fail at any call with nothing left behind") {
  DriverDouble machine;
  auto device = CudaDevice::create(machine.driver(), kPool).value();
  CHECK(fails_at_every_call(machine, [&] { return device->host_buffer(Bytes{4096}); }) == 2);
  auto buffer = device->host_buffer(Bytes{2 * kPage}).value();
  const CopyPiece pieces[] = {{device->arena().at(PageId{3}), buffer->bytes().data(), kPage},
                              {device->arena().at(PageId{1}), buffer->bytes().data() + kPage, kPage}};
  CHECK(fails_at_every_call(machine, [&] { return device->copy(pieces); }) == 1 + 2 + 2);
}
