// libFuzzer's entry to the safetensors reader: whatever comes in is refused, or its tensors tile the data.
// Build with clang and SANGAM_FUZZ=ON; run with a time limit, such as fuzz_safetensors -max_total_time=60.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "messages/vocabulary/assert.hpp"
#include "storage/checkpoint/shard.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace sangam;
  const auto file = std::as_bytes(std::span(bytes, size));
  const auto tensors = parse_shard(file, "file");
  if (!tensors) return 0;
  std::uint64_t header = 0;
  std::memcpy(&header, bytes, sizeof header);
  const std::byte* filled = file.data() + sizeof header + header;
  for (const auto& [name, view] : *tensors) {
    SANGAM_ASSERT(view.bytes.data() == filled, name);
    filled += view.bytes.size();
  }
  SANGAM_ASSERT(filled == file.data() + size);
  return 0;
}
