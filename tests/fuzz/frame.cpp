// libFuzzer's entry to the frame decoder: whatever comes in is refused, or can be said again. Build with
// clang and SANGAM_FUZZ=ON; run with a time limit, such as fuzz_frame -max_total_time=60.
#include <cstddef>
#include <cstdint>

#include "messages/vocabulary/assert.hpp"
#include "messages/wire/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace sangam;
  const auto frame = wire::decode(std::as_bytes(std::span(bytes, size)));
  if (frame) {
    const auto again = wire::encode(*frame);
    SANGAM_ASSERT(again.has_value(), again.error().why);
  }
  return 0;
}
