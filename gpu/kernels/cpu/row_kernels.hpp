// Operations on single rows: norm, rotation, gate, conversions, and the exponential that they share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kernels/ops.hpp"

namespace sangam::cpu {
namespace {

/// e^x to about 2 units in the last place for x in [-87, 88]; outside, the value at the nearer end.
/// x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is split in two so that r is exact; then the Taylor series of
/// e^r.
template <class S>
typename S::Vec exponential(typename S::Vec x) {
  using Vec = typename S::Vec;
  const Vec shift =
      S::all(0x1.8p23f);  // adding it rounds to an integer, which lands in the low mantissa bits
  x = S::min(S::max(x, S::all(-87.0f)), S::all(88.0f));
  const Vec shifted = S::mul_add(x, S::all(0x1.715476p0f), shift);
  const Vec n = S::sub(shifted, shift);
  Vec r = S::mul_add(n, S::all(-0x1.62e400p-1f), x);
  r = S::mul_add(n, S::all(-0x1.7f7d1cp-20f), r);
  Vec series = S::all(1.0f / 5040.0f);
  for (const float term : {1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f}) {
    series = S::mul_add(series, r, S::all(term));
  }
  return S::scale_by_power(series, shifted);
}

/// The last, incomplete vector of a row, padded with zeros.
template <class S>
typename S::Vec load_some(const float* p, std::int64_t count) {
  float padded[S::kLanes] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = p[i];
  return S::load(padded);
}

template <class S>
void store_some(float* p, std::int64_t count, typename S::Vec v) {
  float padded[S::kLanes];
  S::store(padded, v);
  for (std::int64_t i = 0; i < count; ++i) p[i] = padded[i];
}

/// out[i] = f(i's vector of each input) for whole vectors, then for the rest.
template <class S, class F>
void for_vectors(std::int64_t count, float* out, F&& f) {
  std::int64_t i = 0;
  for (; i + S::kLanes <= count; i += S::kLanes) {
    S::store(out + i, f([i](const float* p) { return S::load(p + i); }));
  }
  if (i < count)
    store_some<S>(out + i, count - i, f([=](const float* p) { return load_some<S>(p + i, count - i); }));
}

template <class S>
float sum_of(const float* x, std::int64_t width) {
  typename S::Vec sums = S::zero();
  std::int64_t i = 0;
  for (; i + S::kLanes <= width; i += S::kLanes) sums = S::add(S::load(x + i), sums);
  if (i < width) sums = S::add(load_some<S>(x + i, width - i), sums);
  return S::sum(sums);
}

template <class S>
void rms_norm(const Rows& x, const float* weight, float epsilon, float* out) {
  for (std::int64_t row = 0; row < x.count; ++row) {
    const float* in = x.values + row * x.width;
    typename S::Vec squares = S::zero();
    std::int64_t i = 0;
    for (; i + S::kLanes <= x.width; i += S::kLanes)
      squares = S::mul_add(S::load(in + i), S::load(in + i), squares);
    if (i < x.width) {
      const typename S::Vec rest = load_some<S>(in + i, x.width - i);
      squares = S::mul_add(rest, rest, squares);
    }
    const float mean = S::sum(squares) / float(x.width);
    const typename S::Vec scale = S::all(1.0f / __builtin_sqrtf(mean + epsilon));
    for_vectors<S>(x.width, out + row * x.width,
                   [&](auto&& load) { return S::mul(S::mul(load(in), scale), load(weight)); });
  }
}

/// Heads that lie side by side, all turned by the same angles.
template <class S>
void rotate(float* heads, std::int64_t count, const float* cosine, const float* sine, std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t head = 0; head < count; ++head) {
    float* low = heads + head * head_dim;
    float* high = low + half;
    std::int64_t i = 0;
    for (; i + S::kLanes <= half; i += S::kLanes) {
      const typename S::Vec a = S::load(low + i), b = S::load(high + i);
      const typename S::Vec c = S::load(cosine + i), s = S::load(sine + i);
      S::store(low + i, S::sub(S::mul(a, c), S::mul(b, s)));
      S::store(high + i, S::add(S::mul(b, c), S::mul(a, s)));
    }
    for (; i < half; ++i) {
      const float a = low[i], b = high[i];
      low[i] = a * cosine[i] - b * sine[i];
      high[i] = b * cosine[i] + a * sine[i];
    }
  }
}

template <class S>
void swiglu(float* gate, const float* up, std::int64_t count) {
  const typename S::Vec one = S::all(1.0f);
  for_vectors<S>(count, gate, [&](auto&& load) {
    const typename S::Vec g = load(gate);
    const typename S::Vec silu = S::div(g, S::add(one, exponential<S>(S::sub(S::zero(), g))));
    return S::mul(silu, load(up));
  });
}

/// The largest finite half for what is larger and for NaN, so that pages never hold anything that spreads.
template <class S>
void to_half(const float* values, std::int64_t count, std::uint16_t* out) {
  const typename S::Vec limit = S::all(65504.0f);
  const auto saturate = [&](typename S::Vec v) { return S::max(S::min(v, limit), S::sub(S::zero(), limit)); };
  std::int64_t i = 0;
  for (; i + S::kLanes <= count; i += S::kLanes) S::store_half(out + i, saturate(S::load(values + i)));
  if (i == count) return;
  std::uint16_t padded[S::kLanes];
  S::store_half(padded, saturate(load_some<S>(values + i, count - i)));
  for (std::int64_t j = i; j < count; ++j) out[j] = padded[j - i];
}

template <class S>
void widen(const std::byte* values, DType dtype, std::int64_t count, float* out) {
  if (dtype == DType::f32) {
    __builtin_memcpy(out, values, std::size_t(count) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < count; i += S::kLanes) {
    const std::int64_t some = i + S::kLanes <= count ? S::kLanes : count - i;
    std::uint16_t raw[S::kLanes] = {};
    __builtin_memcpy(raw, values + i * 2, std::size_t(some) * 2);
    if (dtype == DType::f16) {
      store_some<S>(out + i, some, S::load_half(reinterpret_cast<const std::byte*>(raw)));
      continue;
    }
    for (std::int64_t j = 0; j < some; ++j) {
      const std::uint32_t bits = std::uint32_t(raw[j]) << 16;
      __builtin_memcpy(out + i + j, &bits, sizeof bits);
    }
  }
}

}  // namespace
}  // namespace sangam::cpu
