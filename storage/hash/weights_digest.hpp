// The name of a model's weights: equal for equal tensors, however a checkpoint spreads them over files.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "storage/checkpoint/safetensors.hpp"
#include "storage/hash/digest.hpp"

namespace sangam {

/// Digest over the tensors in the order of their names; of each: length of the name, name, length of the
/// dtype's name, dtype's name as in safetensors, rank, dimensions (integers of 64 bits, little endian), and
/// the digest of its bytes. Reads every byte of the weights once.
[[nodiscard]] Digest weights_digest(const Checkpoint& checkpoint);
/// The same from digests that are there already: one for each tensor, by its name. Reads no weights.
[[nodiscard]] Digest weights_digest(const Checkpoint& checkpoint,
                                    const std::map<std::string, Digest, std::less<>>& of_tensors);

}  // namespace sangam
