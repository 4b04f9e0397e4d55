// Independent pieces of work, shared among the machine's cores for as long as one call lasts.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace sangam {

/// Calls work(i) once for every i in [0, count), in no order, and returns when all have returned. The caller
/// takes part; `threads_max` counts it.
template <class Work>
void for_each_index(std::size_t count, std::size_t threads_max, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto serve = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t threads = std::min({count, threads_max, cores});
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(serve);
  serve();
}

}  // namespace sangam
