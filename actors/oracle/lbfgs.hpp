// A minimiser of smooth functions.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace sangam {

/// Gives the value at `x` and writes the gradient; a value that is not finite means "not there".
using Objective = std::function<double(std::span<const double> x, std::span<double> gradient)>;

struct Minimum {
  std::vector<double> x;
  double value = 0.0;
};

/// Limited-memory BFGS (Nocedal and Wright, 2006, algorithm 7.4) with a backtracking line search. Never returns what
/// is worse than `start`.
[[nodiscard]] Minimum minimise(const Objective& objective, std::vector<double> start, int iterations_max);

}  // namespace sangam
