// What is reserved where: the truth of the steady pool.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/quantity.hpp"

namespace sangam {

/// What an instance was promised beside its weights. Shares are of one worker.
struct ReservedDemand {
  Bytes kv{0};
  double compute = 0.0;
  double bandwidth = 0.0;
  double rate = 0.0;  ///< Tokens per second, for policies that balance.

  auto operator<=>(const ReservedDemand&) const = default;
};

/// One of the instances of a model; only dedicated ones have more than one.
struct InstanceKey {
  ModelId model;
  std::uint32_t number = 0;

  auto operator<=>(const InstanceKey&) const = default;
};

/// Where it is placed, and with what.
struct Placed {
  ActorName worker;
  ReservedDemand reserved;
};

/// One entry for each placed instance. What a worker has left is computed from its entries, so what goes gives back
/// what it was given, whatever has been forecast since.
using Ledger = std::map<InstanceKey, Placed>;

}  // namespace sangam
