// Stored elements as fp32. Not for kernels: what is inlined there is built for one instruction set.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "storage/checkpoint/tensor.hpp"

namespace sangam {

/// Of an IEEE half.
[[nodiscard]] inline float half_value(std::uint16_t raw) {
  const std::uint32_t sign = std::uint32_t(raw & 0x8000u) << 16;
  const std::uint32_t magnitude = raw & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
  // A half's exponent bias is 112 less than a float's.
  return std::bit_cast<float>(sign |
                              std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f));
}

/// One element of a tensor of type bf16, f16 or f32.
[[nodiscard]] inline float widened(const std::byte* element, DType dtype) {
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, element, sizeof value);
    return value;
  }
  std::uint16_t raw = 0;
  std::memcpy(&raw, element, sizeof raw);
  return dtype == DType::bf16 ? std::bit_cast<float>(std::uint32_t(raw) << 16) : half_value(raw);
}

}  // namespace sangam
