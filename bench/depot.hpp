// A worker's memory and models for benchmarks, without the worker.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/residency/model_stock.hpp"

namespace sangam {

inline constexpr CpuDeviceOptions kDevice{Bytes{std::int64_t{1} << 30}, Bytes{2 << 20}};
inline constexpr Bytes kHostMax{std::int64_t{2} << 30};
inline constexpr Bytes kWhole{std::int64_t{1} << 40};
inline const ModelId kLarge("large");
inline const ModelId kVariant("variant");
inline const ModelId kSmall("small");

[[noreturn]] inline void give_up(const std::string& why) {
  std::cerr << "bench_lifecycle: " << why << std::endl;
  std::exit(1);
}

struct Depot {
  Depot(const std::string& holder, const std::string& name, const std::filesystem::path& folder)
      : kept(KeptMemory::open({holder, name, kDevice}).value()),
        pool(std::make_unique<PagePool>(kept.take_device())),
        stock({segments, engine, *ops, &kept, &shelf}, kHostMax) {
    stock.add(kLarge, folder / "large");
    stock.add(kVariant, folder / "variant");
    stock.add(kSmall, std::filesystem::path(SANGAM_SOURCE_DIR) / "models" / "A-arith");
  }
  /// Seconds.
  double move(const ModelId& model, Residency target, ModelStock::Peers peers = {}, std::unique_ptr<WeightsPull> pull = nullptr) {
    const auto began = std::chrono::steady_clock::now();
    if (auto begun = stock.begin(model, target, std::move(peers), std::move(pull)); !begun) give_up(begun.error().context);
    for (Result<bool> done = false; !*done;) {
      done = stock.advance(kWhole, Millis(5));
      if (!done) give_up(done.error().context);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }

  std::unique_ptr<Ops> ops = make_cpu_ops({.threads = 1}).value();
  KeptMemory kept;
  std::unique_ptr<PagePool> pool;
  SegmentStore segments{*pool};
  WeightsShelf shelf{*pool};
  Engine engine{{}, *pool};
  ModelStock stock;
};

}  // namespace sangam
