// The Runner over the engine: owns the pool, the weights and the threads of one CPU device.
#pragma once

#include <memory>

#include "actors/worker/runner.hpp"
#include "actors/worker/worker_options.hpp"
#include "messages/vocabulary/blob.hpp"

namespace sangam {

/// Reserves the pool. Fails where it does not fit the machine, or an option names what this machine lacks. `channel`
/// leads to workers on other hosts and outlives the runner; null: there are none.
[[nodiscard]] Result<std::unique_ptr<Runner>> make_engine_runner(const WorkerOptions& options,
                                                                 BlobChannel* channel = nullptr);

}  // namespace sangam
