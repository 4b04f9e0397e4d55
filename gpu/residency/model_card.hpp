// What a host must know of a model to take its weights from another one, as a text: all that its folder says but for
// the weights, and their digests.
#pragma once

#include <string>
#include <string_view>

#include "gpu/residency/folder_reading.hpp"

namespace sangam {

[[nodiscard]] std::string card_of(const Blueprint& blueprint);

/// `place` is what errors call it. `corrupt` where it is no card, or the digests are not those of the tensors that the
/// configuration calls for. The blueprint has no stamp: it is of no folder here.
[[nodiscard]] Result<Blueprint> blueprint_of_card(std::string_view card, const std::string& place);

/// Larger ones are no cards.
inline constexpr Bytes kCardMax{16 * 1024 * 1024};

}  // namespace sangam
