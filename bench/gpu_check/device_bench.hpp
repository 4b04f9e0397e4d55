// What a CUDA device costs: pages one by one, copies beside one large block, sharing, and whole pools.
#pragma once

#include <functional>
#include <memory>

#include "bench/report.hpp"
#include "gpu/device/cuda/cuda_driver.hpp"
#include "messages/vocabulary/quantity.hpp"

namespace sangam {

struct DeviceBenchSizes {
  Pages pages{512};           ///< Of 2 MiB, for all that is measured by the page or by the byte.
  int rounds = 5;             ///< Of each copy; the median counts.
  double memory_share = 0.9;  ///< Of the free memory, for the largest pool.
};

/// Gives `row` each figure as soon as it is there. All that it takes is given back, also after an error.
Result<void> measure_device(std::shared_ptr<const CudaDriver> driver, const DeviceBenchSizes& sizes,
                            std::function<void(const BenchRow&)> row);

}  // namespace sangam
