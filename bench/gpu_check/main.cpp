// The rows of a CUDA device: `bench_gpu [--json]`. Exit codes: 0 measured, 77 no device, 1 the device failed.
#include <sys/resource.h>

#include <cstdio>

#include "bench/gpu_check/device_bench.hpp"
#include "gpu/device/cuda/cuda_context.hpp"

namespace {

/// Sharing takes a descriptor a page.
void allow_many_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

int told(const char* verdict, const sangam::Error& error, int code) {
  std::fprintf(stderr, "%s: %s\n", verdict, error.context.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const auto driver = sangam::load_cuda_driver();
  if (!driver) return told("skipped", driver.error(), 77);
  if (const auto device = sangam::CudaContext::open(*driver, 0); !device)
    return told("skipped", device.error(), 77);
  allow_many_files();
  const sangam::Report report(argc, argv);
  const auto print = [&](const sangam::BenchRow& row) { report.row(row); };
  if (const auto measured = sangam::measure_device(*driver, {}, print); !measured)
    return told("failed", measured.error(), 1);
  return 0;
}
