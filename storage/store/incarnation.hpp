// The number that tells a restarted process or actor from its former self.
#pragma once

#include <string>

#include "messages/vocabulary/names.hpp"
#include "messages/vocabulary/result.hpp"
#include "storage/store/store.hpp"

namespace sangam {

/// Above every earlier result for this name, whatever was killed in between; call once a start. From 1.
[[nodiscard]] Result<Incarnation> next_incarnation(Store& store, const std::string& name);

}  // namespace sangam
