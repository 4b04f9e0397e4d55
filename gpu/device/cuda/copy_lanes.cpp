// A lane's event blocks instead of spinning, so that a waiting thread leaves its core to others.
#include "gpu/device/cuda/copy_lanes.hpp"

#include <ranges>
#include <string>

namespace sangam {
namespace {

constexpr const char* kLost = "restart the process if other copies fail too: its device is lost";

CUdeviceptr address(const std::byte* place) {
  return reinterpret_cast<CUdeviceptr>(place);
}

}  // namespace

Result<std::unique_ptr<CopyLanes>> CopyLanes::create(std::shared_ptr<const CudaContext> context) {
  if (auto current = context->make_current(); !current) return current.error();
  auto lanes = std::unique_ptr<CopyLanes>(new CopyLanes(std::move(context)));
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (auto added = lanes->add_lane(); !added) return added.error();
  }
  return lanes;
}

Result<void> CopyLanes::add_lane() {
  const CudaDriver& driver = context_->driver();
  Lane lane;
  if (const CUresult code = driver.stream_create(&lane.stream, CU_STREAM_NON_BLOCKING); code != CUDA_SUCCESS)
    return context_->failure(code, "cuStreamCreate", "", "stop what else uses the device");
  if (const CUresult code = driver.event_create(&lane.done, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
      code != CUDA_SUCCESS) {
    (void)driver.stream_destroy(lane.stream);
    return context_->failure(code, "cuEventCreate", "", "stop what else uses the device");
  }
  idle_.push_back(lane);
  return {};
}

CopyLanes::~CopyLanes() {
  (void)context_->make_current();
  for (const Lane& lane : std::views::reverse(idle_)) {
    (void)context_->driver().event_destroy(lane.done);
    (void)context_->driver().stream_destroy(lane.stream);
  }
}

CopyLanes::Lane CopyLanes::take() {
  std::unique_lock lock(mutex_);
  one_is_idle_.wait(lock, [this] { return !idle_.empty(); });
  const Lane lane = idle_.back();
  idle_.pop_back();
  return lane;
}

void CopyLanes::give_back(Lane lane) {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(lane);
  }
  one_is_idle_.notify_one();
}

Result<void> CopyLanes::copy(std::span<const CopyPiece> pieces) {
  if (auto current = context_->make_current(); !current) return current.error();
  const Lane lane = take();
  const Result<void> enqueued = enqueue(lane, pieces);
  // What is under way reads and writes the caller's memory: it must have ended before the caller hears of an
  // error.
  const Result<void> waited = wait(lane);
  give_back(lane);
  return enqueued ? waited : enqueued;
}

Result<void> CopyLanes::enqueue(const Lane& lane, std::span<const CopyPiece> pieces) const {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const CopyPiece& piece = pieces[i];
    if (piece.bytes == 0) continue;
    if (const CUresult code =
            context_->driver().memcpy_async(address(piece.to), address(piece.from), piece.bytes, lane.stream);
        code != CUDA_SUCCESS) {
      return context_->failure(code, "cuMemcpyAsync",
                               "piece " + std::to_string(i) + " of " + std::to_string(pieces.size()) + ", " +
                                   std::to_string(piece.bytes) + " bytes",
                               "copy only between mapped memory, and only to where writing is allowed");
    }
  }
  return {};
}

Result<void> CopyLanes::wait(const Lane& lane) const {
  const CudaDriver& driver = context_->driver();
  const char* call = "cuEventRecord";
  CUresult code = driver.event_record(lane.done, lane.stream);
  if (code == CUDA_SUCCESS) {
    call = "cuEventSynchronize";
    code = driver.event_synchronize(lane.done);
  }
  if (code == CUDA_SUCCESS) return {};
  (void)driver.stream_synchronize(lane.stream);  // The other way to wait; the error is reported all the same.
  return context_->failure(code, call, "", kLost);
}

}  // namespace sangam
