// Moore and Hodgson's algorithm on a heap of the jobs chosen so far, longest on top.
#include "actors/scheduler/on_time.hpp"

#include <algorithm>

namespace sangam {
namespace {

struct Chosen {
  double length;
  std::uint32_t position;
};

/// Puts `job` in the place of the longest one: one way down the heap instead of a removal and an insertion.
void replace_longest(std::vector<Chosen>& heap, Chosen job) {
  std::size_t hole = 0;
  for (std::size_t child = 1; child < heap.size(); child = 2 * hole + 1) {
    if (child + 1 < heap.size() && heap[child].length < heap[child + 1].length) ++child;
    if (heap[child].length <= job.length) break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = job;
}

}  // namespace

std::vector<JobIndex> on_time_subset(std::span<const TimedJob> jobs) {
  const auto shorter = [](const Chosen& a, const Chosen& b) { return a.length < b.length; };
  std::vector<Chosen> heap;
  double busy = 0.0;
  for (std::uint32_t position = 0; position < jobs.size(); ++position) {
    const TimedJob& job = jobs[position];
    if (busy + job.length <= job.deadline) {
      busy += job.length;
      heap.push_back({job.length, position});
      std::push_heap(heap.begin(), heap.end(), shorter);
    } else if (!heap.empty() && job.length < heap.front().length) {
      busy += job.length - heap.front().length;
      replace_longest(heap, {job.length, position});
    }
  }
  std::sort(heap.begin(), heap.end(), [](const Chosen& a, const Chosen& b) { return a.position < b.position; });
  std::vector<JobIndex> subset;
  subset.reserve(heap.size());
  for (const Chosen& chosen : heap) subset.push_back(jobs[chosen.position].job);
  return subset;
}

}  // namespace sangam
