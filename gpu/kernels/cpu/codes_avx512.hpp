// The levels of sixteen codes, by AVX-512.
#pragma once

#include "gpu/kernels/cpu/expanded_rows.hpp"
#include "gpu/kernels/cpu/lanes_avx512.hpp"

namespace sangam::cpu {
namespace {

inline __mmask16 mask16(const std::byte* p) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return bits;
}

/// Lane i has code i of sixteen in its lowest two bits.
inline __m512i spread_two_bits(const std::byte* p) {
  std::uint32_t codes;
  __builtin_memcpy(&codes, p, sizeof codes);
  const __m512i shifts = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_srlv_epi32(_mm512_set1_epi32(int(codes)), shifts);
}

/// Four levels from `at` on, four times: whatever stands above a code's two bits.
inline __m512 four_levels(const float* at) { return _mm512_broadcast_f32x4(_mm_loadu_ps(at)); }

template <>
struct Codes<Avx512, RowCode::b1> {
  __m512 plus{}, minus{};
  void enter(__m512 scale) {
    plus = scale;
    minus = _mm512_mul_ps(scale, _mm512_set1_ps(-1.0f));
  }
  __m512 even(const std::byte* p, int) const { return _mm512_mask_blend_ps(mask16(p), minus, plus); }
  __m512 odd(const std::byte* p, int) const { return even(p + 2, 0); }
};

template <>
struct Codes<Avx512, RowCode::b2> {
  const __m512 levels = four_levels(sangam::levels(RowCode::b2).data());
  __m512 table{};
  void enter(__m512 scale) { table = _mm512_mul_ps(scale, levels); }
  __m512 even(const std::byte* p, int) const { return _mm512_permutexvar_ps(spread_two_bits(p), table); }
  __m512 odd(const std::byte* p, int) const { return even(p + 4, 0); }
};

template <>
struct Codes<Avx512, RowCode::b3> {
  const __m512 lower_levels = four_levels(sangam::levels(RowCode::b3).data());
  const __m512 upper_levels = four_levels(sangam::levels(RowCode::b3).data() + 4);
  __m512 lower{}, upper{};
  void enter(__m512 scale) {
    lower = _mm512_mul_ps(scale, lower_levels);
    upper = _mm512_mul_ps(scale, upper_levels);
  }
  __m512 at(const std::byte* two_bits, const std::byte* upper_bit) const {
    const __m512i codes = spread_two_bits(two_bits);
    return _mm512_mask_permutexvar_ps(_mm512_permutexvar_ps(codes, lower), mask16(upper_bit), codes, upper);
  }
  __m512 even(const std::byte* p, int) const { return at(p, p + 8); }
  __m512 odd(const std::byte* p, int) const { return at(p + 4, p + 10); }
};

template <>
struct Codes<Avx512, RowCode::b4> {
  const __m512 levels = _mm512_loadu_ps(sangam::levels(RowCode::b4).data());
  __m512 table{};
  void enter(__m512 scale) { table = _mm512_mul_ps(scale, levels); }
  static __m512i pairs(const std::byte* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  /// Of an index only the lowest four bits count.
  __m512 even(const std::byte* p, int) const { return _mm512_permutexvar_ps(pairs(p), table); }
  __m512 odd(const std::byte* p, int) const {
    return _mm512_permutexvar_ps(_mm512_srli_epi32(pairs(p), 4), table);
  }
};

template <>
struct Codes<Avx512, RowCode::b8> {
  __m512 factor{};
  void enter(__m512 scale) { factor = scale; }
  __m512 even(const std::byte* p, int) const {
    const __m512i codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm512_mul_ps(factor, _mm512_cvtepi32_ps(_mm512_sub_epi32(codes, _mm512_set1_epi32(128))));
  }
  __m512 odd(const std::byte* p, int) const { return even(p + 16, 0); }
};

}  // namespace
}  // namespace sangam::cpu
