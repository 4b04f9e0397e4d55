// Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): random words as a
// function of a key and a counter, so that any draw can be repeated without those before it.
#pragma once

#include <array>
#include <cstdint>

namespace sangam {

[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {std::uint32_t(second >> 32) ^ counter[1] ^ key[0], std::uint32_t(second),
               std::uint32_t(first >> 32) ^ counter[3] ^ key[1], std::uint32_t(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// Uniform in [0, 1), with the 53 bits that a double can hold: the draw at one position of one stream.
[[nodiscard]] constexpr double uniform_draw(std::uint64_t seed, std::uint64_t position) {
  const auto words = philox({std::uint32_t(position), std::uint32_t(position >> 32), 0, 0},
                            {std::uint32_t(seed), std::uint32_t(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 11;
  return double(bits) * 0x1.0p-53;
}

}  // namespace sangam
