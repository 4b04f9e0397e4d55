// What workers did between two snapshots, and which loads to send them in between. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/oracle/oracle_options.hpp"
#include "cli/snapshot.hpp"

namespace sangam {

/// One load: so many requests at once, alike, each of so many tokens.
struct GridPoint {
  std::int64_t streams = 1;
  Tokens input{1};
  Tokens output{1};
};

struct GridLimits {
  Tokens context{0};  ///< Of the model, prompt and answer together; 0: not known.
  std::int64_t workers = 1;
  std::int64_t streams = 16;  ///< At once, on each worker.
};

/// Prompts alone in four lengths tell what prompts cost; answers of one, some and many streams beside short prompts and
/// long ones tell what steps cost. Every point fits the context.
[[nodiscard]] std::vector<GridPoint> grid_of(const GridLimits& limits);

/// What each worker did for `model` between two snapshots, all prompts having been of `input` tokens. A worker that
/// did something for another model, or began anew, has no sample: its steps are not this model's alone.
[[nodiscard]] std::vector<WorkSample> work_between(const Snapshot& before, const Snapshot& after, const ModelId& model,
                                                   Tokens input);

/// Whether each worker that is in both has told twice since: the first letter may have been on its way.
[[nodiscard]] bool has_told_since(const Snapshot& seen, const Snapshot& next);

}  // namespace sangam
