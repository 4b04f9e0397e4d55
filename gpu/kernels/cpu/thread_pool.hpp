// Threads that wait for the next piece of a step. Work is divided statically, so who computes what never
// varies.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace sangam {

/// Owned and used by one thread at a time. Between two runs the workers spin briefly, since a step consists
/// of hundreds of runs a few microseconds apart, and then sleep.
class ThreadPool {
 public:
  /// `threads` counts the caller, which takes part 0; 0 means one for each hardware thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return int(workers_.size()) + 1; }

  /// Calls work(part) once for every part in [0, threads()) and returns when all have returned.
  template <class Work>
  void run(const Work& work) {
    run_erased([](const void* callable, int part) { (*static_cast<const Work*>(callable))(part); }, &work);
  }

 private:
  using Entry = void (*)(const void* callable, int part);
  void run_erased(Entry entry, const void* callable);
  void serve(int part);

  Entry entry_ = nullptr;
  const void* callable_ = nullptr;
  bool stopping_ = false;
  std::atomic<std::uint32_t> round_{0};    ///< Rises when a piece of work is ready.
  std::atomic<std::uint32_t> pending_{0};  ///< Workers that have not finished this round.
  std::atomic<bool> busy_{false};
  std::vector<std::jthread> workers_;
};

}  // namespace sangam
