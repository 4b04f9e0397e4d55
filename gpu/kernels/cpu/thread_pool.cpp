// A round counter wakes the workers, a pending counter the caller; both spin before they sleep on a futex.
#include "gpu/kernels/cpu/thread_pool.hpp"

#include "messages/vocabulary/assert.hpp"

namespace sangam {
namespace {

/// About 20 microseconds of pauses: longer than the gap between two operations of a step, shorter than a time
/// slice that another process could use.
constexpr int kSpins = 600;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns once `value` differs from `old`.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

int default_threads() {
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : int(count);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int count = threads > 0 ? threads : default_threads();
  workers_.reserve(std::size_t(count) - 1);
  for (int part = 1; part < count; ++part) workers_.emplace_back([this, part] { serve(part); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void ThreadPool::run_erased(Entry entry, const void* callable) {
  SANGAM_ASSERT(!busy_.exchange(true, std::memory_order_acquire),
                "a thread pool serves one caller at a time");
  entry_ = entry;
  callable_ = callable;
  pending_.store(std::uint32_t(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  if (!workers_.empty()) round_.notify_all();
  entry(callable, 0);
  for (std::uint32_t left = pending_.load(std::memory_order_acquire); left != 0;) {
    left = wait_for_change(pending_, left);
  }
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::serve(int part) {
  for (std::uint32_t seen = 0;;) {
    seen = wait_for_change(round_, seen);
    if (stopping_) return;
    entry_(callable_, part);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

}  // namespace sangam
