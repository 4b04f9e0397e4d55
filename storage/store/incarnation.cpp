// Incarnations are counters of the meta family.
#include "storage/store/incarnation.hpp"

namespace sangam {

Result<Incarnation> next_incarnation(Store& store, const std::string& name) {
  const auto count = store.count_up(Family::meta, "incarnation/" + name);
  if (!count) return count.error();
  return Incarnation(*count);
}

}  // namespace sangam
