// The Runner over the engine: owns the pool, the weights and the threads of one CPU device.
#pragma once

#include <memory>

#include "actors/worker/runner.hpp"
#include "actors/worker/worker_options.hpp"

namespace sangam {

/// Reserves the pool. Fails where it does not fit the machine, or an option names what this machine lacks.
[[nodiscard]] Result<std::unique_ptr<Runner>> make_engine_runner(const WorkerOptions& options);

}  // namespace sangam
