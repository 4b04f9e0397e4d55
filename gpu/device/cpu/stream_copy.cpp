// Non-temporal stores, which every x86-64 has; elsewhere memcpy.
#include "gpu/device/cpu/stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sangam {

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kAhead = 1024;
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (bytes >= head + kLine) {
    std::memcpy(to, from, head);
    const std::size_t lines = (bytes - head) / kLine;
    for (std::size_t line = 0; line < lines; ++line) {
      const auto* source = reinterpret_cast<const __m128i*>(from + head + line * kLine);
      auto* target = reinterpret_cast<__m128i*>(to + head + line * kLine);
      // The hardware's own prefetcher stops at each page of 4 KiB. Beyond the end this does nothing.
      _mm_prefetch(reinterpret_cast<const char*>(source) + kAhead, _MM_HINT_NTA);
      const __m128i a = _mm_loadu_si128(source);
      const __m128i b = _mm_loadu_si128(source + 1);
      const __m128i c = _mm_loadu_si128(source + 2);
      const __m128i d = _mm_loadu_si128(source + 3);
      _mm_stream_si128(target, a);
      _mm_stream_si128(target + 1, b);
      _mm_stream_si128(target + 2, c);
      _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();  // before others are told that it is there
    const std::size_t done = head + lines * kLine;
    to += done;
    from += done;
    bytes -= done;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace sangam
