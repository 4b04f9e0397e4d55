// The named placement policies: where a model that arrives goes, and what is packed anew. Values in, values out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "actors/placement/packing.hpp"
#include "messages/vocabulary/quantity.hpp"
#include "messages/vocabulary/result.hpp"
#include "messages/vocabulary/time.hpp"

namespace sangam {

/// What distinguishes one way to place models from another. Constants that are set here go before the options'.
struct PlacementPolicy {
  std::string_view name;
  /// A bin in use for an item that arrives; none: it takes one that is not in use.
  std::optional<BinIndex> (*choose)(Bins& bins, ItemIndex item) = nullptr;
  /// All anew, with about `effort` evaluations. Null: what is placed stays.
  Packing (*pack)(const PackingProblem& problem, std::uint64_t effort) = nullptr;
  bool repairs = false;       ///< Bins that departures have damaged are mended at once.
  bool weighs_moves = false;  ///< A new packing is taken only where the bins it saves outweigh the bytes it moves.
  bool dedicated = false;     ///< Every model is steady and has workers of its own, as many as it needs.
  std::optional<Millis> interval;   ///< Between packings.
  std::optional<Millis> idle_leave;
  std::optional<Bytes> kv_budget;   ///< Each model reserves so much KV, and compute and bandwidth do not count.
};

/// By the name that a configuration uses: potential, first_fit_decreasing, static, periodic_repack, periodic_balance.
[[nodiscard]] Result<PlacementPolicy> placement_policy(std::string_view name);

/// Janus: arrivals by the largest <r', v'>, repair of damaged bins, consolidation where it pays.
[[nodiscard]] PlacementPolicy potential_policy();

/// Arrivals to the first worker with room; consolidation by first fit, largest share first.
[[nodiscard]] PlacementPolicy first_fit_decreasing_policy();

/// Each model has its own workers, chosen when it arrives, and keeps them.
[[nodiscard]] PlacementPolicy static_policy();

/// After Prism: every 5 s all models anew, in falling order of their token rate, each to the worker in use with the
/// least KV pressure (token rate over free KV bytes). 6 GB of KV for each model; idle ones leave after 50 s.
[[nodiscard]] PlacementPolicy periodic_repack_policy();

/// Prism as published: the same over all workers, in use or not, as Prism balances a pool of given size; an instance
/// stays where it is unless its worker's pressure is half as much again as the least. Instances of one model are on
/// workers of their own.
[[nodiscard]] PlacementPolicy periodic_balance_policy();

}  // namespace sangam
