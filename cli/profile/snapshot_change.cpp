// Differences of counts, and the grid.
#include "cli/profile/snapshot_change.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace sangam {
namespace {

constexpr std::int64_t kContextMost = 8192;  // Longer prompts tell nothing more of a line, and take long.
constexpr std::int64_t kAnswer = 64;

const SnapshotWorker* worker_in(const Snapshot& snapshot, const ActorName& name) {
  const auto found = std::find_if(snapshot.workers.begin(), snapshot.workers.end(),
                                  [&](const SnapshotWorker& worker) { return worker.worker == name; });
  return found == snapshot.workers.end() ? nullptr : &*found;
}

/// Prompts and answers together.
std::int64_t tokens_of(const SnapshotInstance* instance) {
  return instance == nullptr ? 0 : instance->prefill_tokens + instance->output_tokens;
}

bool others_worked(const SnapshotWorker& before, const SnapshotWorker& after, const ModelId& model) {
  return std::any_of(after.instances.begin(), after.instances.end(), [&](const SnapshotInstance& instance) {
    // Fewer than before: it was away meanwhile, and nobody knows what it did until then.
    return instance.model != model && tokens_of(&instance) != tokens_of(before.find(instance.model));
  });
}

}  // namespace

std::vector<GridPoint> grid_of(const GridLimits& limits) {
  const std::int64_t context = limits.context == Tokens(0) ? 2048 : std::min(limits.context.count(), kContextMost);
  const auto part = [&](std::int64_t divisor) { return Tokens(std::max<std::int64_t>(1, context / divisor)); };
  std::vector<GridPoint> grid;
  for (const std::int64_t divisor : {16, 8, 4, 2}) grid.push_back({1, part(divisor), Tokens(1)});
  const Tokens answer(std::clamp<std::int64_t>(context / 4, 1, kAnswer));
  const std::int64_t some = std::min(limits.streams, std::max<std::int64_t>(2, limits.streams / 4));
  for (const std::int64_t streams : std::set<std::int64_t>{1, some, limits.streams}) {
    grid.push_back({limits.workers * streams, part(16), answer});
    grid.push_back({limits.workers * streams, part(2), answer});
  }
  return grid;
}

std::vector<WorkSample> work_between(const Snapshot& before, const Snapshot& after, const ModelId& model, Tokens input) {
  std::vector<WorkSample> samples;
  for (const SnapshotWorker& worker : after.workers) {
    const SnapshotWorker* earlier = worker_in(before, worker.worker);
    const SnapshotInstance* now = worker.find(model);
    if (earlier == nullptr || now == nullptr || earlier->incarnation != worker.incarnation) continue;
    const SnapshotInstance* then = earlier->find(model);
    if (then == nullptr || others_worked(*earlier, worker, model)) continue;
    WorkSample sample;
    sample.steps = double(worker.steps - earlier->steps);
    sample.prefill_tokens = double(now->prefill_tokens - then->prefill_tokens);
    sample.prompts = sample.prefill_tokens / double(input.count());
    sample.output_tokens = double(now->output_tokens - then->output_tokens);
    sample.context_tokens = double(now->context_tokens - then->context_tokens);
    sample.seconds = double((worker.busy - earlier->busy).count()) / 1e6;
    // What the prefix cache gave was no prompt.
    const bool whole = sample.prefill_tokens >= 0.0 && std::floor(sample.prompts) == sample.prompts && sample.output_tokens >= 0.0 && sample.context_tokens >= 0.0;
    if (whole && sample.steps > 0.0 && sample.seconds > 0.0) samples.push_back(sample);
  }
  return samples;
}

bool has_told_since(const Snapshot& seen, const Snapshot& next) {
  return std::all_of(seen.workers.begin(), seen.workers.end(), [&](const SnapshotWorker& worker) {
    const SnapshotWorker* later = worker_in(next, worker.worker);
    return later == nullptr || later->incarnation != worker.incarnation || later->sequence >= worker.sequence + 2;
  });
}

}  // namespace sangam
