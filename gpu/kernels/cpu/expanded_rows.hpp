// Linear maps whose weights are not plain: a few rows are expanded to fp32 in cache, then multiplied by the tiles. An
// expanded weight and the order of sums are the same whatever the tile, so results are as independent of it as plain ones.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/kernels/cpu/dot_tiles.hpp"

namespace sangam::cpu {
namespace {

/// The levels of the even or the odd columns of part `part` of a group's codes; one for each instruction set.
template <class S, RowCode code>
struct Codes;

/// Parts of a group: each fills two vectors.
template <class S>
constexpr int kParts = int(kCodeGroup) / (2 * S::kLanes);

// A source gives the columns of one row, group after group.

template <class S, RowCode code>
class CodedSource {
 public:
  CodedSource(const Matrix& m, std::int64_t row, std::int64_t column) {
    const std::byte* at = m.bytes + row * m.row_stride();
    std::uint16_t half;
    __builtin_memcpy(&half, at, sizeof half);
    // Finite and not negative: an exponent's bias is 112 less than a float's.
    unit_ = std::bit_cast<float>(std::uint32_t(half) << 13) * 0x1p112f;
    next_ = at + kRowHeader + column / kCodeGroup * group_stride(code);
  }
  __attribute__((always_inline)) void enter() {
    scale_ = S::all(unit_ * float(std::to_integer<int>(*next_)));
    codes_ = next_ + 1;
    next_ += group_stride(code);
  }
  __attribute__((always_inline)) typename S::Vec even(int part) const {
    return S::mul(scale_, levels_.even(codes_, part));
  }
  __attribute__((always_inline)) typename S::Vec odd(int part) const {
    return S::mul(scale_, levels_.odd(codes_, part));
  }
  /// Rows are padded to whole groups.
  static constexpr bool kPadded = true;

 private:
  const Codes<S, code> levels_{};
  const std::byte* next_ = nullptr;
  const std::byte* codes_ = nullptr;
  float unit_ = 0;
  typename S::Vec scale_{};
};

template <class S, DType dtype>
class PlainSource {
 public:
  static constexpr std::int64_t kBytes = bytes_of(dtype);
  static constexpr bool kPadded = false;

  PlainSource(const Matrix& m, std::int64_t row, std::int64_t column)
      : next_(m.bytes + (row * m.columns + column) * kBytes) {}
  /// From the last, incomplete group, which is copied to where it may be read whole.
  void pad(std::int64_t columns) {
    __builtin_memset(padded_, 0, sizeof padded_);
    __builtin_memcpy(padded_, next_, std::size_t(columns * kBytes));
    next_ = padded_;
  }
  __attribute__((always_inline)) void enter() {
    group_ = next_;
    next_ += kCodeGroup * kBytes;
  }
  __attribute__((always_inline)) typename S::Vec even(int part) const { return half<0>(part); }
  __attribute__((always_inline)) typename S::Vec odd(int part) const { return half<1>(part); }

 private:
  template <int odd>
  __attribute__((always_inline)) typename S::Vec half(int part) const {
    const std::byte* at = group_ + part * 2 * S::kLanes * kBytes;
    if constexpr (dtype == DType::bf16) {
      return odd ? S::bf16_odd(at) : S::bf16_even(at);
    } else {
      using W = std::conditional_t<dtype == DType::f16, HalfWeights<S>, FloatWeights<S>>;
      float adjacent[2 * S::kLanes], apart[S::kLanes];
      S::store(adjacent, W::first(at));
      S::store(adjacent + S::kLanes, W::second(at));
      for (int lane = 0; lane < S::kLanes; ++lane) apart[lane] = adjacent[2 * lane + odd];
      return S::load(apart);
    }
  }

  const std::byte* next_;
  const std::byte* group_ = nullptr;
  std::byte padded_[kCodeGroup * kBytes];
};

struct NoDelta {};

/// scale canonical + delta, or the canonical as it is: its scale is applied to the sums.
template <class S, class C, class D>
__attribute__((always_inline)) inline void expand_groups(C& canonical, D& delta, typename S::Vec scale,
                                                         std::int64_t groups, float* out) {
  for (; groups > 0; --groups) {
    canonical.enter();
    if constexpr (!std::is_same_v<D, NoDelta>) delta.enter();
    each<kParts<S>>([&](auto part) {
      typename S::Vec even = canonical.even(part), odd = canonical.odd(part);
      if constexpr (!std::is_same_v<D, NoDelta>) {
        even = S::mul_add(scale, even, delta.even(part));
        odd = S::mul_add(scale, odd, delta.odd(part));
      }
      S::store(out, even);
      S::store(out + S::kLanes, odd);
      out += 2 * S::kLanes;
    });
  }
}

/// A piece of a block of rows.
struct Piece {
  const Linear* weight;
  std::int64_t column;   ///< A multiple of kColumnBlock.
  std::int64_t columns;
  std::int64_t row;
  std::int64_t rows;
};

template <class S, class C, class D>
void expand(const Piece& p, float* out) {
  const std::int64_t groups = groups_of(p.columns), rest = p.columns % kCodeGroup;
  const std::vector<float>& scale = p.weight->scale;
  for (std::int64_t row = p.row; row < p.row + p.rows; ++row, out += kExpandedStride) {
    C canonical(p.weight->canonical, row, p.column);
    D delta = [&] {
      if constexpr (std::is_same_v<D, NoDelta>) return NoDelta();
      else return D(p.weight->delta, row, p.column);
    }();
    const typename S::Vec factor = S::all(scale.empty() ? 1.0f : scale[std::size_t(row)]);
    if constexpr (C::kPadded) {
      expand_groups<S>(canonical, delta, factor, groups, out);
    } else {
      expand_groups<S>(canonical, delta, factor, p.columns / kCodeGroup, out);
      if (rest == 0) continue;
      canonical.pad(rest);
      expand_groups<S>(canonical, delta, factor, 1, out + p.columns / kCodeGroup * kCodeGroup);
    }
  }
}

template <class S, class C>
void expand_from(const Piece& p, float* out) {
  if (p.weight->delta.bytes == nullptr) return expand<S, C, NoDelta>(p, out);
  switch (*p.weight->delta.code) {
    case RowCode::b1: return expand<S, C, CodedSource<S, RowCode::b1>>(p, out);
    case RowCode::b2: return expand<S, C, CodedSource<S, RowCode::b2>>(p, out);
    case RowCode::b3: return expand<S, C, CodedSource<S, RowCode::b3>>(p, out);
    case RowCode::b4: return expand<S, C, CodedSource<S, RowCode::b4>>(p, out);
    case RowCode::b8: return expand<S, C, CodedSource<S, RowCode::b8>>(p, out);
  }
}

/// Rows of kExpandedStride floats each.
template <class S>
void expand(const Piece& p, float* out) {
  const Matrix& canonical = p.weight->canonical;
  if (!canonical.code) {
    if (canonical.dtype == DType::bf16) return expand_from<S, PlainSource<S, DType::bf16>>(p, out);
    if (canonical.dtype == DType::f16) return expand_from<S, PlainSource<S, DType::f16>>(p, out);
    return expand_from<S, PlainSource<S, DType::f32>>(p, out);
  }
  switch (*canonical.code) {
    case RowCode::b1: return expand_from<S, CodedSource<S, RowCode::b1>>(p, out);
    case RowCode::b2: return expand_from<S, CodedSource<S, RowCode::b2>>(p, out);
    case RowCode::b3: return expand_from<S, CodedSource<S, RowCode::b3>>(p, out);
    case RowCode::b4: return expand_from<S, CodedSource<S, RowCode::b4>>(p, out);
    case RowCode::b8: return expand_from<S, CodedSource<S, RowCode::b8>>(p, out);
  }
}

template <class S>
void project_expanded(const ProjectionRange& r, const RowStarts& starts) {
  const Linear& weight = *r.projection.weight;
  const std::int64_t columns = weight.canonical.columns;
  const std::int64_t step = r.x.count <= kFewRows ? 16 : kExpandedRows;
  for (std::int64_t row = r.first; row < r.last; row += step) {
    const std::int64_t rows = row + step <= r.last ? step : r.last - row;
    for (std::int64_t k = 0; k < columns; k += kColumnBlock) {
      const std::int64_t left = columns - k;
      const Piece piece{&weight, k, left <= kColumnBlock ? left : kColumnBlock, row, rows};
      expand<S>(piece, r.scratch);
      const DotBlock block{.weights = reinterpret_cast<const std::byte*>(r.scratch),
                           .row_bytes = kExpandedStride * std::int64_t(sizeof(float)),
                           .columns = groups_of(piece.columns) * kCodeGroup,
                           .x = r.x.values + k,
                           .x_stride = r.x.stride,
                           .out = r.projection.out + row,
                           .out_stride = weight.canonical.rows};
      dot_block<S, FloatWeights<S>>(block, starts.at(row, k), rows, r.x.count);
    }
  }
}

template <class S>
void project(const ProjectionRange& r) {
  const Projection& p = r.projection;
  const Linear& weight = *p.weight;
  const auto all = [](const std::vector<float>& rows) { return rows.empty() ? nullptr : rows.data(); };
  // With a delta, a row's factor is in the expanded weights already.
  const float* scale = weight.delta.bytes == nullptr ? all(weight.scale) : nullptr;
  const RowStarts starts{p.bias, p.adds, scale, all(weight.shift), r.x.sums};
  if (is_plain(weight)) {
    project_plain<S>({weight.canonical, r.x, p.out, r.first, r.last}, starts);
  } else {
    project_expanded<S>(r, starts);
  }
  if (r.lowered.values == nullptr) return;
  project_plain<S>({weight.up, r.lowered, p.out, r.first, r.last}, {.adds = true});
}

}  // namespace
}  // namespace sangam::cpu
