// Eight fp32 lanes: AVX2 with FMA and F16C. Included only by the translation unit that is built with those
// flags.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace sangam::cpu {
namespace {

struct Avx2 {
  using Vec = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 6;
  /// Weight rows beside `rows` activation rows: twelve accumulators fill the sixteen registers.
  static constexpr int weight_rows(int rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : 2; }
  /// Weight rows at once where they come from memory.
  static constexpr int streamed_rows(int) { return 2; }

  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec all(float x) { return _mm256_set1_ps(x); }
  static Vec load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
  /// Into a register, where GCC would rather load anew for each use.
  static Vec load_once(const float* p) {
    Vec v = load(p);
#if !defined(__clang__)
    asm("" : "+x"(v));
#endif
    return v;
  }
  static Vec add(Vec a, Vec b) {
    return _mm256_add_ps(a, b);
  }
  static Vec sub(Vec a, Vec b) {
    return _mm256_sub_ps(a, b);
  }
  static Vec mul(Vec a, Vec b) {
    return _mm256_mul_ps(a, b);
  }
  static Vec div(Vec a, Vec b) {
    return _mm256_div_ps(a, b);
  }
  static Vec mul_add(Vec a, Vec b, Vec c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  /// b where either is NaN.
  static Vec min(Vec a, Vec b) {
    return _mm256_min_ps(a, b);
  }
  static Vec max(Vec a, Vec b) {
    return _mm256_max_ps(a, b);
  }

  /// ((0+4)+(2+6)) + ((1+5)+(3+7))
  static float sum(Vec v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  /// Four sums at once, each of the same additions as sum().
  static void sum_four(Vec a, Vec b, Vec c, Vec d, float* out) {
    const auto four = [](Vec v) {
      return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    };
    const __m128 a4 = four(a), b4 = four(b), c4 = four(c), d4 = four(d);
    const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(a4, b4), _mm_unpackhi_ps(a4, b4));
    const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(c4, d4), _mm_unpackhi_ps(c4, d4));
    _mm_storeu_ps(out, _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab)));
  }
  static float largest(Vec v) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  /// v * 2^n, where n is the integer in the low mantissa bits of `shifted`.
  static Vec scale_by_power(Vec v, Vec shifted) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), exponent));
  }

  /// Of sixteen bf16: those at even places, those at odd places.
  static Vec bf16_even(const std::byte* p) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), 16));
  }
  /// Two shifts rather than a mask, which would hold a register that the tiles need.
  static Vec bf16_odd(const std::byte* p) {
    const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_srli_epi32(pairs, 16), 16));
  }
  static Vec load_half(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store_half(std::uint16_t* p, Vec v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};

}  // namespace
}  // namespace sangam::cpu
