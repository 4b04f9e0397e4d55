// Four fp32 lanes in the compilers' own vector types: runs on every CPU that they know, with no fused
// operations.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sangam::cpu {
namespace {

struct Portable {
  typedef float Vec __attribute__((vector_size(16)));
  typedef std::uint32_t Bits __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
  static constexpr int kTileRows = 4;
  static constexpr int weight_rows(int rows) { return rows == 1 ? 8 : 2; }
  /// Weight rows at once where they come from memory.
  static constexpr int streamed_rows(int) { return 2; }

  static Vec zero() { return Vec{}; }
  static Vec all(float x) { return Vec{x, x, x, x}; }
  static Vec load(const float* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static Vec load_once(const float* p) { return load(p); }
  static void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
  static Vec add(Vec a, Vec b) { return a + b; }
  static Vec sub(Vec a, Vec b) { return a - b; }
  static Vec mul(Vec a, Vec b) { return a * b; }
  static Vec div(Vec a, Vec b) { return a / b; }
  static Vec mul_add(Vec a, Vec b, Vec c) { return a * b + c; }
  /// b where either is NaN.
  static Vec min(Vec a, Vec b) { return a < b ? a : b; }
  static Vec max(Vec a, Vec b) { return a > b ? a : b; }

  /// (0+2) + (1+3)
  static float sum(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }
  static void sum_four(Vec a, Vec b, Vec c, Vec d, float* out) {
    out[0] = sum(a), out[1] = sum(b), out[2] = sum(c), out[3] = sum(d);
  }
  static float largest(Vec v) {
    const float even = v[0] > v[2] ? v[0] : v[2];
    const float odd = v[1] > v[3] ? v[1] : v[3];
    return even > odd ? even : odd;
  }
  /// v * 2^n, where n is the integer in the low mantissa bits of `shifted`.
  static Vec scale_by_power(Vec v, Vec shifted) { return Vec(Bits(v) + (Bits(shifted) << 23)); }

  /// Of eight bf16: those at even places, those at odd places.
  static Vec bf16_even(const std::byte* p) { return bf16(p, 0); }
  static Vec bf16_odd(const std::byte* p) { return bf16(p, 1); }
  static Vec bf16(const std::byte* p, int odd) {
    std::uint16_t raw[8];
    std::memcpy(raw, p, sizeof raw);
    Bits bits{raw[odd], raw[odd + 2], raw[odd + 4], raw[odd + 6]};
    return Vec(bits << 16);
  }
  static Vec load_half(const std::byte* p) {
    std::uint16_t raw[4];
    std::memcpy(raw, p, sizeof raw);
    return Vec{half_to_float(raw[0]), half_to_float(raw[1]), half_to_float(raw[2]), half_to_float(raw[3])};
  }
  static void store_half(std::uint16_t* p, Vec v) {
    for (int lane = 0; lane < kLanes; ++lane) p[lane] = float_to_half(v[lane]);
  }

  /// Exact: a half's exponent is lifted by a multiplication, which also normalises subnormals.
  static float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = std::uint32_t(half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13));
    const float lifted = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(lifted));
  }
  /// To nearest, ties to even; |x| <= 65504.
  static std::uint16_t float_to_half(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const auto sign = std::uint16_t((bits >> 16) & 0x8000u);
    if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 aligns the last place of a subnormal half
      const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
      return std::uint16_t(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u));
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return std::uint16_t(sign | ((rounded - 0x38000000u) >> 13));
  }
};

}  // namespace
}  // namespace sangam::cpu
