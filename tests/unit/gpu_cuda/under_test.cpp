// The list of behaviours runs over the double: one driver for the process, as a real one would be.
#include <unistd.h>

#include <cstdio>

#include "gpu/device/cuda/cuda_device.hpp"
#include "tests/unit/gpu_device/device_behaviours.hpp"
#include "tests/unit/gpu_cuda/driver_double.hpp"

namespace sangam {
namespace {

/// A peer has no test that could fail: it ends, with a code that no role has.
void report_from_anywhere(const std::string& what) {
  static const pid_t tests = getpid();
  std::fprintf(stderr, "%s: broken rule of the driver: %s\n", getpid() == tests ? "test" : "peer",
               what.c_str());
  _exit(97);
}

}  // namespace

const DeviceUnderTest& device_under_test() {
  static DriverDouble machine({}, report_from_anywhere);
  static const DeviceUnderTest device{[](Pages pages) -> Result<std::unique_ptr<Device>> {
    auto made = CudaDevice::create(
        machine.driver(), {.ordinal = 0, .size = Bytes(pages.count() << 21), .page = Bytes(2 << 20)});
    if (!made) return made.error();
    return std::unique_ptr<Device>(std::move(*made));
  }};
  return device;
}

}  // namespace sangam
