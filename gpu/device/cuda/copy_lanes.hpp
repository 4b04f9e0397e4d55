// The streams on which a CUDA device copies, beside whatever its kernels do.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/device/cuda/cuda_context.hpp"
#include "gpu/device/device.hpp"

namespace sangam {

/// A lane carries one caller's copies at a time; who finds none idle waits for one. From any thread.
class CopyLanes {
 public:
  static constexpr std::size_t kLanes =
      4;  ///< One for each direction, and one more of each for who comes second.

  static Result<std::unique_ptr<CopyLanes>> create(std::shared_ptr<const CudaContext> context);
  ~CopyLanes();
  CopyLanes(const CopyLanes&) = delete;
  CopyLanes& operator=(const CopyLanes&) = delete;

  /// Returns when the device is done with all pieces, also when it refused one of them.
  Result<void> copy(std::span<const CopyPiece> pieces);

 private:
  struct Lane {
    CUstream stream = nullptr;
    CUevent done = nullptr;
  };

  explicit CopyLanes(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {}
  Result<void> add_lane();
  Lane take();
  void give_back(Lane lane);
  Result<void> enqueue(const Lane& lane, std::span<const CopyPiece> pieces) const;
  [[nodiscard]] Result<void> wait(const Lane& lane) const;

  std::shared_ptr<const CudaContext> context_;
  std::mutex mutex_;
  std::condition_variable one_is_idle_;
  std::vector<Lane> idle_;
};

}  // namespace sangam
