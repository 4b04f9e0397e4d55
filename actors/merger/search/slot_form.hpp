// In which form each slot of a pool is stored: the state that a search looks for.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/coding/row_code.hpp"

namespace sangam::merging {

/// One matrix of one model, by its place in the pool's list.
using SiteIndex = std::uint32_t;

/// Own weights, or a canonical that several sites share, and what is added to it for this site alone.
struct SlotForm {
  std::int32_t group = -1;        ///< Whose canonical it is; -1: its own weights.
  std::uint32_t sharing = 0;      ///< Bit i: member i of the group shares. 0 if it is its own.
  std::optional<RowCode> code{};  ///< Of the canonical or the own weights; none: as a plain matrix.
  std::optional<RowCode> delta{};
  std::int32_t rank = 0;
  bool affine = false;

  auto operator<=>(const SlotForm&) const = default;
  [[nodiscard]] bool is_shared() const { return group >= 0; }
};

/// By site.
using PoolState = std::vector<SlotForm>;

}  // namespace sangam::merging
