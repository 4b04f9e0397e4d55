// The levels of eight codes, by AVX2.
#pragma once

#include "gpu/kernels/cpu/expanded_rows.hpp"
#include "gpu/kernels/cpu/lanes_avx2.hpp"

namespace sangam::cpu {
namespace {

/// Lane i has bit i of the byte as its sign.
inline __m256 signs_of(const std::byte* p) {
  const __m256i shifts = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
  return _mm256_castsi256_ps(_mm256_sllv_epi32(_mm256_set1_epi32(std::to_integer<int>(*p)), shifts));
}

/// Lane i has code i of eight in its lowest two bits.
inline __m256i spread_two_bits(const std::byte* p) {
  std::uint16_t codes;
  __builtin_memcpy(&codes, p, sizeof codes);
  const __m256i shifts = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
  return _mm256_srlv_epi32(_mm256_set1_epi32(codes), shifts);
}

/// Four levels from `at` on, twice: whatever stands above a code's two bits.
inline __m256 four_levels(const float* at) { return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(at)); }

inline __m256i eight_bytes(const std::byte* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

template <>
struct Codes<Avx2, RowCode::b1> {
  __m256 plus{}, minus{};
  void enter(__m256 scale) {
    plus = scale;
    minus = _mm256_mul_ps(scale, _mm256_set1_ps(-1.0f));
  }
  __m256 even(const std::byte* p, int part) const { return _mm256_blendv_ps(minus, plus, signs_of(p + part)); }
  __m256 odd(const std::byte* p, int part) const { return even(p + 2, part); }
};

template <>
struct Codes<Avx2, RowCode::b2> {
  const __m256 levels = four_levels(sangam::levels(RowCode::b2).data());
  __m256 table{};
  void enter(__m256 scale) { table = _mm256_mul_ps(scale, levels); }
  __m256 even(const std::byte* p, int part) const {
    return _mm256_permutevar8x32_ps(table, spread_two_bits(p + 2 * part));
  }
  __m256 odd(const std::byte* p, int part) const { return even(p + 4, part); }
};

template <>
struct Codes<Avx2, RowCode::b3> {
  const __m256 lower_levels = four_levels(sangam::levels(RowCode::b3).data());
  const __m256 upper_levels = four_levels(sangam::levels(RowCode::b3).data() + 4);
  __m256 lower{}, upper{};
  void enter(__m256 scale) {
    lower = _mm256_mul_ps(scale, lower_levels);
    upper = _mm256_mul_ps(scale, upper_levels);
  }
  __m256 at(const std::byte* two_bits, const std::byte* upper_bit) const {
    const __m256i codes = spread_two_bits(two_bits);
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(lower, codes), _mm256_permutevar8x32_ps(upper, codes),
                            signs_of(upper_bit));
  }
  __m256 even(const std::byte* p, int part) const { return at(p + 2 * part, p + 8 + part); }
  __m256 odd(const std::byte* p, int part) const { return at(p + 4 + 2 * part, p + 10 + part); }
};

template <>
struct Codes<Avx2, RowCode::b4> {
  const __m256 lower_levels = _mm256_loadu_ps(sangam::levels(RowCode::b4).data());
  const __m256 upper_levels = _mm256_loadu_ps(sangam::levels(RowCode::b4).data() + 8);
  __m256 lower{}, upper{};
  void enter(__m256 scale) {
    lower = _mm256_mul_ps(scale, lower_levels);
    upper = _mm256_mul_ps(scale, upper_levels);
  }
  /// Of an index only the lowest three bits count; the fourth chooses the table.
  __m256 at(__m256i codes) const {
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(lower, codes), _mm256_permutevar8x32_ps(upper, codes),
                            _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
  }
  __m256 even(const std::byte* p, int part) const { return at(eight_bytes(p + 8 * part)); }
  __m256 odd(const std::byte* p, int part) const { return at(_mm256_srli_epi32(eight_bytes(p + 8 * part), 4)); }
};

template <>
struct Codes<Avx2, RowCode::b8> {
  __m256 factor{};
  void enter(__m256 scale) { factor = scale; }
  __m256 even(const std::byte* p, int part) const {
    return _mm256_mul_ps(factor,
                         _mm256_cvtepi32_ps(_mm256_sub_epi32(eight_bytes(p + 8 * part), _mm256_set1_epi32(128))));
  }
  __m256 odd(const std::byte* p, int part) const { return even(p + 16, part); }
};

}  // namespace
}  // namespace sangam::cpu
