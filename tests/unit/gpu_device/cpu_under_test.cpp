// The list of behaviours on a CPU device.
#include "gpu/device/cpu/cpu_device.hpp"
#include "tests/unit/gpu_device/device_behaviours.hpp"

namespace sangam {

const DeviceUnderTest& device_under_test() {
  static const DeviceUnderTest device{[](Pages pages) -> Result<std::unique_ptr<Device>> {
    auto made = CpuDevice::create({.size = Bytes(pages.count() << 16), .page = Bytes(1 << 16)});
    if (!made) return made.error();
    return std::unique_ptr<Device>(std::move(*made));
  }};
  return device;
}

}  // namespace sangam
