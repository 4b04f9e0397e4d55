// The JSON header of a safetensors file as plain entries: syntax only, no judgement of shapes and offsets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"

namespace sangam {

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  ///< Bytes after the header.
  std::int64_t end = 0;
};

inline constexpr std::size_t kTensorRankMax = 8;

/// Streams, so memory is bounded by the entries and not by what the JSON nests. Refuses names and fields that
/// occur twice, which a document parser would fold silently. `place` is what errors call the file.
[[nodiscard]] Result<std::vector<HeaderEntry>> read_header(std::string_view json, const std::string& place);

}  // namespace sangam
