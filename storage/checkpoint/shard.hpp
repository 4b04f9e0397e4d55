// One safetensors file: length of the header (8 bytes, little endian), header (JSON), data.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam {

struct ShardTensor {
  std::string name;
  TensorView view;
};

/// The format's own limit.
inline constexpr std::size_t kHeaderBytesMax = 100'000'000;

/// The tensors of a whole file in memory, in the order of their bytes. They tile the data exactly: no hole,
/// no overlap, nothing missing and nothing left over; names are unique. The views point into `file`.
/// `place` is what errors call the file.
[[nodiscard]] Result<std::vector<ShardTensor>> parse_shard(std::span<const std::byte> file,
                                                           const std::string& place);

}  // namespace sangam
