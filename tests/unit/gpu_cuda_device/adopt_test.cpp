// What only a real driver can answer: whether memory outlives its maker, and may be exported again by who
// imported it.
#include <doctest/doctest.h>

#include "gpu/device/cuda/cuda_device.hpp"
#include "gpu/device/cuda/cuda_driver.hpp"
#include "tests/unit/gpu_device/device_behaviours.hpp"

using namespace sangam;

TEST_CASE("a pool is adopted after its device has ended, and adopted again from its adopter") {
  const auto driver = load_cuda_driver().value();
  const PageExtent all{PageId{0}, Pages{3}};
  std::vector<SharedPages> kept;
  {
    const auto device = device_under_test().make(Pages{3}).value();
    number_pages(*device);
    kept = device->share({&all, 1}).value();
  }
  for (int round = 0; round < 2; ++round) {
    CAPTURE(round);
    const auto adopted = CudaDevice::adopt(driver, 0, kept);
    REQUIRE(adopted);
    for (std::uint32_t page = 0; page < 3; ++page)
      CHECK(read_from(**adopted, page_of(**adopted, page)) == pattern(page, (*adopted)->arena().page_bytes));
    kept = (*adopted)->share({&all, 1}).value();
  }
}

TEST_CASE("a pool that leaves no memory for a second one is refused by its numbers") {
  const auto driver = load_cuda_driver().value();
  const auto device = CudaDevice::create(
      driver, {.ordinal = 0, .size = Bytes(std::int64_t{1} << 50), .page = Bytes(2 << 20)});
  REQUIRE(!device);
  CHECK(device.error().code == ErrorCode::exhausted);
}
