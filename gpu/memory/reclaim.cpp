// The order in which pages give way.
#include "gpu/memory/reclaim.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace sangam {

std::vector<std::size_t> idle_first(std::span<const ReclaimCandidate> candidates) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(!candidates[a].idle, candidates[a].last_used) <
           std::tuple(!candidates[b].idle, candidates[b].last_used);
  });
  return order;
}

}  // namespace sangam
