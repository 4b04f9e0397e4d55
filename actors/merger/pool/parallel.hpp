// Independent pieces of work on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam::merging {

/// work(0), ..., work(count - 1), each once, in any order. The first error ends it; of several, that of the lowest piece.
template <class Work>
[[nodiscard]] Result<void> in_parallel(std::size_t count, int threads, const Work& work) {
  std::vector<std::optional<Error>> errors(count);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto run = [&] {
    for (std::size_t i = next++; i < count && !failed; i = next++) {
      if (Result<void> done = work(i); !done) {
        errors[i] = done.error();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < std::min(threads, int(count)); ++t) others.emplace_back(run);
    run();
  }
  for (const auto& error : errors) {
    if (error) return *error;
  }
  return {};
}

}  // namespace sangam::merging
