// Mends single bins: those whose models complement each other no longer, and those that hold too much.
#pragma once

#include <vector>

#include "actors/placement/packing.hpp"

namespace sangam {

/// A bin whose damage rho is above `alpha` gives those of its items to other bins in use that lower the number of
/// bins, then the total potential most, then move the fewest weights; nothing if no part does. True if it did.
bool repair(Bins& bins, BinIndex bin, double alpha);

/// Takes out of a bin that holds too much what lets the rest fit, and puts it elsewhere: dropping the fewest, then
/// with the fewest more bins, then the least potential, then the fewest weights moved. Returns what found no room.
std::vector<ItemIndex> relieve(Bins& bins, BinIndex bin);

}  // namespace sangam
