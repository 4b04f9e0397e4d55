// Sixteen fp32 lanes: AVX-512 F, BW, DQ and VL. The BF16 extension's dot product is not used: see
// docs/decisions.md. Included only by the translation unit that is built with those flags.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace sangam::cpu {
namespace {

struct Avx512 {
  using Vec = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 6;
  /// Weight rows beside `rows` activation rows: up to 24 accumulators of the 32 registers.
  static constexpr int weight_rows(int rows) { return rows <= 2 ? 8 : 4; }
  /// Weight rows at once where they come from memory.
  static constexpr int streamed_rows(int rows) { return rows; }

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec all(float x) { return _mm512_set1_ps(x); }
  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  /// Into a register, where GCC would rather load anew for each use.
  static Vec load_once(const float* p) {
    Vec v = load(p);
#if !defined(__clang__)
    asm("" : "+v"(v));
#endif
    return v;
  }
  static Vec add(Vec a, Vec b) {
    return _mm512_add_ps(a, b);
  }
  static Vec sub(Vec a, Vec b) {
    return _mm512_sub_ps(a, b);
  }
  static Vec mul(Vec a, Vec b) {
    return _mm512_mul_ps(a, b);
  }
  static Vec div(Vec a, Vec b) {
    return _mm512_div_ps(a, b);
  }
  static Vec mul_add(Vec a, Vec b, Vec c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  /// b where either is NaN.
  static Vec min(Vec a, Vec b) {
    return _mm512_min_ps(a, b);
  }
  static Vec max(Vec a, Vec b) {
    return _mm512_max_ps(a, b);
  }

  /// The upper half onto the lower, then as eight lanes: ((0+4)+(2+6)) + ((1+5)+(3+7))
  static float sum(Vec v) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  /// Four sums at once, each of the same additions as sum().
  static void sum_four(Vec a, Vec b, Vec c, Vec d, float* out) {
    const auto four = [](Vec v) {
      const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
      return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    };
    const __m128 a4 = four(a), b4 = four(b), c4 = four(c), d4 = four(d);
    const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a4, b4), _mm_unpackhi_ps(a4, b4));
    const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c4, d4), _mm_unpackhi_ps(c4, d4));
    _mm_storeu_ps(out, _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab)));
  }
  static float largest(Vec v) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  /// v * 2^n, where n is the integer in the low mantissa bits of `shifted`.
  static Vec scale_by_power(Vec v, Vec shifted) {
    const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v), exponent));
  }

  /// Of thirty-two bf16: those at even places, those at odd places.
  static Vec bf16_even(const std::byte* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
  }
  static Vec bf16_odd(const std::byte* p) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(int(0xffff0000u))));
  }
  static Vec load_half(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store_half(std::uint16_t* p, Vec v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace
}  // namespace sangam::cpu
