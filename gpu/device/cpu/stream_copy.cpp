// Non-temporal stores, which every x86-64 has; elsewhere memcpy.
#include "gpu/device/cpu/stream_copy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sangam {
namespace {

constexpr std::size_t kLine = 64;
/// An eighth of the smallest first-level cache: measured best of 1 KiB to 256 KiB.
constexpr std::size_t kBlock = 4096;

/// Bytes up to the next line.
std::size_t before_line(const std::byte* address) {
  return (kLine - reinterpret_cast<std::uintptr_t>(address) % kLine) % kLine;
}

#if defined(__x86_64__)

/// `to` begins a line, and so does `kept`, which gets the same bytes; null: nobody keeps them.
void stream_lines(std::byte* to, const std::byte* from, std::size_t lines, std::byte* kept) {
  constexpr std::size_t kAhead = 1024;
  for (std::size_t line = 0; line < lines; ++line) {
    const auto* source = reinterpret_cast<const __m128i*>(from + line * kLine);
    auto* target = reinterpret_cast<__m128i*>(to + line * kLine);
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
    if (kept == nullptr) continue;
    auto* copy = reinterpret_cast<__m128i*>(kept + line * kLine);
    _mm_store_si128(copy, a);
    _mm_store_si128(copy + 1, b);
    _mm_store_si128(copy + 2, c);
    _mm_store_si128(copy + 3, d);
  }
}

/// Before others are told that the bytes are there.
void end_streaming() {
  _mm_sfence();
}

#else

void stream_lines(std::byte* to, const std::byte* from, std::size_t lines, std::byte* kept) {
  if (kept != nullptr) std::memcpy(kept, from, lines * kLine);
  std::memcpy(to, kept != nullptr ? kept : from, lines * kLine);
}

void end_streaming() {}

#endif

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = std::min(bytes, before_line(to));
  const std::size_t lines = (bytes - head) / kLine;
  const std::size_t tail = head + lines * kLine;
  std::memcpy(to, from, head);
  stream_lines(to + head, from + head, lines, nullptr);
  std::memcpy(to + tail, from + tail, bytes - tail);
  end_streaming();
}

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes, CopyWitness& witness) {
  alignas(kLine) std::array<std::byte, kBlock> block;
  while (bytes > 0) {
    const std::size_t head = before_line(to);
    const std::size_t now = std::min(bytes, head > 0 ? head : kBlock);
    const std::size_t lines = head > 0 ? 0 : now / kLine;
    const std::size_t rest = lines * kLine;
    stream_lines(to, from, lines, block.data());
    std::memcpy(block.data() + rest, from + rest, now - rest);  // read once: it may be changing
    std::memcpy(to + rest, block.data() + rest, now - rest);
    witness.see(std::span(block).first(now));
    to += now;
    from += now;
    bytes -= now;
  }
  end_streaming();
}

}  // namespace sangam
