// The list of behaviours on the machine's own CUDA device; where there is none, it says why and counts as
// skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string_view>

#include "gpu/device/cuda/cuda_device.hpp"
#include "gpu/device/cuda/cuda_driver.hpp"
#include "tests/unit/gpu_device/device_behaviours.hpp"

namespace sangam {
namespace {

Result<std::unique_ptr<Device>> make(Pages pages) {
  auto driver = load_cuda_driver();
  if (!driver) return driver.error();
  auto device =
      CudaDevice::create(*driver, {.ordinal = 0, .size = Bytes(pages.count() << 21), .page = Bytes(2 << 20)});
  if (!device) return device.error();
  return std::unique_ptr<Device>(std::move(*device));
}

}  // namespace

const DeviceUnderTest& device_under_test() {
  static const DeviceUnderTest device{make, true};
  return device;
}

}  // namespace sangam

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--peer") return sangam::run_peer(argv[2], 3);
  if (const auto device = sangam::device_under_test().make(sangam::Pages{1}); !device) {
    const bool absent = device.error().code == sangam::ErrorCode::unavailable;
    std::printf("%s: %s\n", absent ? "skipped" : "failed", device.error().context.c_str());
    return absent ? 77 : 1;
  }
  return doctest::Context(argc, argv).run();
}
