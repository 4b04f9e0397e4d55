// Random packing problems. All shares are multiples of 1/1024, so that sums are exact in any order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "actors/placement/packing.hpp"

namespace sangam::exact {

/// How the demands of a problem's models are drawn.
enum class Mix : std::uint8_t {
  uniform,  ///< Each share on its own, up to 0.6.
  skewed,   ///< One share is large, the others are small.
  small,    ///< Most models are small, few are large (log-normal).
  sharing,  ///< Families that share a base and, two by two, more.
};
constexpr Mix kMixes[] = {Mix::uniform, Mix::skewed, Mix::small, Mix::sharing};

inline double draw(std::mt19937_64& random) { return double(random() >> 11) * 0x1.0p-53; }

inline double grid(double share) { return double(std::int64_t(share * 1024.0)) / 1024.0; }

inline Shares draw_shares(Mix mix, std::mt19937_64& random) {
  Shares shares{};
  const std::uint64_t large = random() % shares.size();
  std::lognormal_distribution<double> bulk(-1.8, 0.7);
  for (std::size_t d = 0; d < shares.size(); ++d) {
    switch (mix) {
      case Mix::uniform: shares[d] = 0.02 + 0.58 * draw(random); break;
      case Mix::skewed: shares[d] = d == large ? 0.25 + 0.4 * draw(random) : 0.02 + 0.18 * draw(random); break;
      case Mix::small: shares[d] = std::min(0.9, bulk(random)); break;
      case Mix::sharing: shares[d] = 0.02 + 0.33 * draw(random); break;
    }
    shares[d] = grid(shares[d]);
  }
  return shares;
}

/// Families of five: one piece that all have, and one for each pair of neighbours.
inline void add_families(PackingProblem& problem, std::mt19937_64& random) {
  for (std::size_t first = 0; first < problem.items.size(); first += 5) {
    const std::size_t end = std::min(first + 5, problem.items.size());
    if (end - first < 2) return;
    const auto base = std::uint32_t(problem.pieces.size());
    problem.pieces.push_back(grid(0.1 + 0.25 * draw(random)));
    for (std::size_t i = first; i < end; ++i) {
      problem.items[i].family = std::uint32_t(first);
      problem.items[i].pieces = {base};
    }
    for (std::size_t i = first; i + 1 < end; ++i) {
      const auto piece = std::uint32_t(problem.pieces.size());
      problem.pieces.push_back(grid(0.1 * draw(random)));
      problem.items[i].pieces.push_back(piece);
      problem.items[i + 1].pieces.push_back(piece);
    }
  }
}

/// As many bins as items, all of one kind.
inline PackingProblem random_problem(Mix mix, std::size_t items, std::mt19937_64& random) {
  PackingProblem problem;
  for (std::size_t i = 0; i < items; ++i) {
    Item& item = problem.items.emplace_back();
    item.own = draw_shares(mix, random);
    item.weights = item.own[0] / 2.0;
    item.rate = 1000.0 * draw(random);
  }
  if (mix == Mix::sharing) add_families(problem, random);
  for (Item& item : problem.items) {
    for (const std::uint32_t piece : item.pieces) item.weights += problem.pieces[piece];
  }
  problem.kinds.resize(1);
  problem.bins.assign(items, 0);
  return problem;
}

}  // namespace sangam::exact
