// What the dispatch policies work on: jobs that wait, machines that will be free, and the plan they make.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// A position in PlanInput::jobs.
using JobIndex = std::uint32_t;
/// A position in PlanInput::machines.
using MachineIndex = std::uint32_t;
/// The scheduler's own number for a model; dense, never reused.
using ModelIndex = std::uint32_t;

/// Prefill time in microseconds as a polynomial of the prompt's tokens. Infinite where it cannot be done.
struct PrefillCost {
  double fixed = std::numeric_limits<double>::infinity();
  double per_token = 0.0;
  double per_token_squared = 0.0;

  [[nodiscard]] double micros(Tokens tokens) const {
    const auto n = double(tokens.count());
    return fixed + n * (per_token + n * per_token_squared);
  }
};

/// One prefill that waits.
struct PrefillJob {
  Instant deadline = Instant::max();  ///< When the first token is due; max: no deadline.
  Tokens tokens{0};
  ModelIndex model = 0;
  std::uint64_t arrival = 0;  ///< Counts over all models.
  std::uint64_t turn = 0;     ///< Counts within the model.

  [[nodiscard]] bool has_deadline() const { return deadline != Instant::max(); }
};

/// A worker as a policy sees it: it prefills one job after the other.
struct PrefillMachine {
  Instant free_at{};
  std::int64_t running = 0;           ///< Requests that it holds already.
  std::span<const PrefillCost> cost;  ///< By ModelIndex; a model beyond the end is not held.

  [[nodiscard]] double micros(const PrefillJob& job) const {
    return job.model < cost.size() ? cost[job.model].micros(job.tokens) : PrefillCost{}.fixed;
  }
};

struct PlanInput {
  std::span<const PrefillJob> jobs;  ///< First those with a deadline, earliest first; then the others in fair order.
  std::span<const PrefillMachine> machines;
  Instant horizon = Instant::max();  ///< What would start later will be planned again before it starts.
  std::uint64_t seed = 0;            ///< For policies that draw lots.
};

/// For each machine, the jobs it shall run, in order.
using PrefillPlan = std::vector<std::vector<JobIndex>>;

}  // namespace sangam
