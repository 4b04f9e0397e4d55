// Copying past the caches.
#pragma once

#include <cstddef>

namespace sangam {

/// As memcpy, for bytes of a copy that is larger than the caches: what is written is not read from memory first,
/// which costs a third of the bandwidth. memcpy itself does so only where one call is that large.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace sangam
