// The benchmark of a device, over the double: its figures mean nothing here, but it must keep the driver's
// rules.
#include "bench/gpu_check/device_bench.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "tests/unit/gpu_cuda/driver_double.hpp"

using namespace sangam;

namespace {

constexpr DeviceBenchSizes kSmall{.pages = Pages{8}, .rounds = 1, .memory_share = 0.5};
}  // namespace

TEST_CASE("measuring a device gives a figure for each thing and gives back all that it takes") {
  DriverDouble machine;
  std::vector<BenchRow> rows;
  CHECK(measure_device(machine.driver(), kSmall, [&](const BenchRow& row) { rows.push_back(row); }));
  CHECK(machine.held() == "");
  CHECK(rows.size() == 9 + 3 * 3 + 2 * 2);
  for (const BenchRow& row : rows) {
    CAPTURE(row.metric);
    CHECK(row.value > 0.0);
  }
}

TEST_CASE(
    "a measurement that the device refuses ends with the device's words and gives back all that it took") {
  for (const char* call :
       {"cuMemCreate", "cuMemExportToShareableHandle", "cuMemcpyAsync", "cuMemHostAlloc"}) {
    CAPTURE(call);
    DriverDouble machine;
    machine.fail_after(0, CUDA_ERROR_OUT_OF_MEMORY, call);
    const auto measured = measure_device(machine.driver(), kSmall, [](const BenchRow&) {});
    REQUIRE(!measured);
    CHECK(measured.error().context.find(call) != std::string::npos);
    CHECK(machine.held() == "");
  }
}
