// Copying past the caches.
#pragma once

#include <cstddef>

#include "gpu/device/device.hpp"

namespace sangam {

/// As memcpy, for bytes of a copy that is larger than the caches: what is written is not read from memory first,
/// which costs a third of the bandwidth. memcpy itself does so only where one call is that large.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

/// The same; the witness sees each few kilobytes while they are in the cache next to the core, so that memory has no
/// more to do than for the copy alone.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes, CopyWitness& witness);

}  // namespace sangam
