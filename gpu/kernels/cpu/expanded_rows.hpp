// Linear maps whose weights are not plain: a few rows are expanded to fp32 in cache, then multiplied by the tiles. An
// expanded weight and the order of sums are the same whatever the tile, so results are as independent of it as plain ones.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/kernels/cpu/dot_tiles.hpp"

namespace sangam::cpu {
namespace {

/// The levels of the even or the odd columns of part `part` of a group's codes, times the scale that `enter` was told; one
/// for each instruction set. Where levels come from a table, the table is what is scaled.
template <class S, RowCode code>
struct Codes;

/// Parts of a group: each fills two vectors.
template <class S>
constexpr int kParts = int(kCodeGroup) / (2 * S::kLanes);

// A source gives the columns of one row, group after group.

template <class S, RowCode code>
class CodedSource {
 public:
  CodedSource(const Matrix& m, std::int64_t row, std::int64_t column, std::int64_t rows_ahead = 0)
      : ahead_(rows_ahead * m.row_stride()) {
    const std::byte* at = m.bytes + row * m.row_stride();
    std::uint16_t half;
    __builtin_memcpy(&half, at, sizeof half);
    // Finite and not negative: an exponent's bias is 112 less than a float's.
    unit_ = std::bit_cast<float>(std::uint32_t(half) << 13) * 0x1p112f;
    next_ = at + kRowHeader + column / kCodeGroup * group_stride(code);
  }
  __attribute__((always_inline)) void enter() {
    levels_.enter(S::all(unit_ * float(std::to_integer<int>(*next_))));
    codes_ = next_ + 1;
    __builtin_prefetch(next_ + ahead_, 0, 2);
    next_ += group_stride(code);
  }
  __attribute__((always_inline)) typename S::Vec even(int part) const {
    return levels_.even(codes_, part);
  }
  __attribute__((always_inline)) typename S::Vec odd(int part) const {
    return levels_.odd(codes_, part);
  }
  /// Rows are padded to whole groups.
  static constexpr bool kPadded = true;

 private:
  Codes<S, code> levels_{};
  const std::byte* next_ = nullptr;
  const std::byte* codes_ = nullptr;
  std::int64_t ahead_;  ///< Bytes: what is fetched into L2 meanwhile.
  float unit_ = 0;
};

template <class S, DType dtype>
class PlainSource {
 public:
  static constexpr std::int64_t kBytes = bytes_of(dtype);
  static constexpr bool kPadded = false;

  PlainSource(const Matrix& m, std::int64_t row, std::int64_t column, std::int64_t rows_ahead = 0)
      : next_(m.bytes + (row * m.columns + column) * kBytes), ahead_(rows_ahead * m.columns * kBytes) {}
  /// From the last, incomplete group, which is copied to where it may be read whole.
  void pad(std::int64_t columns) {
    __builtin_memset(padded_, 0, sizeof padded_);
    __builtin_memcpy(padded_, next_, std::size_t(columns * kBytes));
    next_ = padded_;
  }
  __attribute__((always_inline)) void enter() {
    group_ = next_;
    __builtin_prefetch(next_ + ahead_, 0, 2);
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
  std::int64_t ahead_;
  const std::byte* group_ = nullptr;
  std::byte padded_[kCodeGroup * kBytes];
};

struct NoDelta {};

template <class D>
D make_delta(const Matrix& delta, std::int64_t row, std::int64_t column, std::int64_t rows_ahead = 0) {
  if constexpr (std::is_same_v<D, NoDelta>) return {};
  else return D(delta, row, column, rows_ahead);
}

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
    D delta = make_delta<D>(p.weight->delta, row, p.column);
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

/// f<C, D>() with the sources of the map's canonical and delta.
template <class S, class C, class F>
__attribute__((always_inline)) inline void with_delta(const Matrix& delta, const F& f) {
  if (delta.bytes == nullptr) return f.template operator()<C, NoDelta>();
  switch (*delta.code) {
    case RowCode::b1: return f.template operator()<C, CodedSource<S, RowCode::b1>>();
    case RowCode::b2: return f.template operator()<C, CodedSource<S, RowCode::b2>>();
    case RowCode::b3: return f.template operator()<C, CodedSource<S, RowCode::b3>>();
    case RowCode::b4: return f.template operator()<C, CodedSource<S, RowCode::b4>>();
    case RowCode::b8: return f.template operator()<C, CodedSource<S, RowCode::b8>>();
  }
}
template <class S, class F>
__attribute__((always_inline)) inline void with_sources(const Linear& weight, const F& f) {
  const Matrix& canonical = weight.canonical;
  if (!canonical.code) {
    if (canonical.dtype == DType::bf16) return with_delta<S, PlainSource<S, DType::bf16>>(weight.delta, f);
    if (canonical.dtype == DType::f16) return with_delta<S, PlainSource<S, DType::f16>>(weight.delta, f);
    return with_delta<S, PlainSource<S, DType::f32>>(weight.delta, f);
  }
  switch (*canonical.code) {
    case RowCode::b1: return with_delta<S, CodedSource<S, RowCode::b1>>(weight.delta, f);
    case RowCode::b2: return with_delta<S, CodedSource<S, RowCode::b2>>(weight.delta, f);
    case RowCode::b3: return with_delta<S, CodedSource<S, RowCode::b3>>(weight.delta, f);
    case RowCode::b4: return with_delta<S, CodedSource<S, RowCode::b4>>(weight.delta, f);
    case RowCode::b8: return with_delta<S, CodedSource<S, RowCode::b8>>(weight.delta, f);
  }
}

/// Into L2 what the next `step` rows have in these columns' place: their part of the memory between.
inline void fetch_rows(const Matrix& m, std::int64_t row, std::int64_t step, const Piece& p) {
  const std::byte* rows = m.bytes + (row + step) * m.row_stride();
  const std::int64_t bytes = step * m.row_stride();
  const std::byte* end = rows + bytes * (p.column + p.columns) / m.columns;
  for (const std::byte* at = rows + bytes * p.column / m.columns; at < end; at += Ahead::kLine) {
    __builtin_prefetch(at, 0, 2);
  }
}

/// Rows that are expanded at once beside few activation rows.
constexpr std::int64_t kFewExpanded = 16;

template <class S, class C, class D>
void project_expanded(const ProjectionRange& r, const RowStarts& starts) {
  const Linear& weight = *r.projection.weight;
  const std::int64_t columns = weight.canonical.columns;
  const std::int64_t step = r.x.count <= kFewRows ? kFewExpanded : kExpandedRows;
  for (std::int64_t row = r.first; row < r.last; row += step) {
    const std::int64_t rows = row + step <= r.last ? step : r.last - row;
    for (std::int64_t k = 0; k < columns; k += kColumnBlock) {
      const std::int64_t left = columns - k;
      const Piece piece{&weight, k, left <= kColumnBlock ? left : kColumnBlock, row, rows};
      expand<S, C, D>(piece, r.scratch);
      const bool few = r.x.count <= kFewRows;
      if (few && weight.delta.bytes != nullptr) fetch_rows(weight.delta, row, step, piece);
      const Matrix& canonical = weight.canonical;
      const std::int64_t ahead = step * canonical.row_stride();  // Bytes of as many rows more.
      const DotBlock block{.weights = reinterpret_cast<const std::byte*>(r.scratch),
                           .row_bytes = kExpandedStride * std::int64_t(sizeof(float)),
                           .columns = groups_of(piece.columns) * kCodeGroup,
                           .x = r.x.values + k,
                           .x_stride = r.x.stride,
                           .out = r.projection.out + row,
                           .out_stride = canonical.rows,
                           .next = few ? canonical.bytes + (row + step) * canonical.row_stride() + ahead * k / columns
                                       : nullptr,
                           .next_bytes = ahead * piece.columns / columns};
      dot_block<S, FloatWeights<S>>(block, starts.at(row, k), rows, r.x.count);
    }
  }
}

/// So few activation rows take weights from registers.
constexpr std::int64_t kDirectRows = 2;

/// N rows of weights from `row` on by M of activations, each group multiplied as soon as it is expanded: the same weights
/// in the same order as the tiles', so the same sums.
template <class S, class C, class D, int N, int M>
void project_direct(const ProjectionRange& r, const RowStarts& starts, std::int64_t row) {
  using Vec = typename S::Vec;
  constexpr bool kDelta = !std::is_same_v<D, NoDelta>;
  const Linear& weight = *r.projection.weight;
  const std::int64_t columns = weight.canonical.columns;
  const auto factor = [&](int n) { return S::all(weight.scale.empty() ? 1.0f : weight.scale[std::size_t(row + n)]); };
  const Vec factors[2] = {factor(0), factor(N - 1)};
  for (std::int64_t k = 0; k < columns; k += kColumnBlock) {
    C canonical[2] = {C(weight.canonical, row, k, N), C(weight.canonical, row + N - 1, k, N)};
    D delta[2] = {make_delta<D>(weight.delta, row, k, N), make_delta<D>(weight.delta, row + N - 1, k, N)};
    Vec sums[N][M];
    each<N>([&](auto n) { each<M>([&](auto m) { sums[n][m] = S::zero(); }); });
    const float* x = r.x.values + k;
    const auto groups = [&](std::int64_t count) __attribute__((always_inline)) {
      for (; count > 0; --count) {
        each<N>([&](auto n) {
          canonical[n].enter();
          if constexpr (kDelta) delta[n].enter();
        });
        each<kParts<S>>([&](auto part) {
          each<N>([&](auto n) {
            Vec even = canonical[n].even(part), odd = canonical[n].odd(part);
            if constexpr (kDelta) {
              even = S::mul_add(factors[n], even, delta[n].even(part));
              odd = S::mul_add(factors[n], odd, delta[n].odd(part));
            }
            each<M>([&](auto m) {
              const float* at = x + m * r.x.stride;
              sums[n][m] = S::mul_add(even, S::load(at), sums[n][m]);
              sums[n][m] = S::mul_add(odd, S::load(at + S::kLanes), sums[n][m]);
            });
          });
          x += 2 * S::kLanes;
        });
      }
    };
    const std::int64_t here = columns - k <= kColumnBlock ? columns - k : kColumnBlock;
    if constexpr (C::kPadded) {
      groups(groups_of(here));
    } else {
      groups(here / kCodeGroup);
      if (here % kCodeGroup != 0) {
        for (C& c : canonical) c.pad(here % kCodeGroup);
        groups(1);
      }
    }
    const Start start = starts.at(row, k);
    each<N>([&](auto n) {
      each<M>([&](auto m) {
        float* out = r.projection.out + m * weight.canonical.rows + row + n;
        *out = start.with(S::sum(sums[n][m]), out, n, m);
      });
    });
  }
}

template <class S, class C, class D, int M>
void project_direct(const ProjectionRange& r, const RowStarts& starts) {
  std::int64_t row = r.first;
  for (; row + 2 <= r.last; row += 2) project_direct<S, C, D, 2, M>(r, starts, row);
  if (row < r.last) project_direct<S, C, D, 1, M>(r, starts, row);
}

/// Formats that are worth code of their own.
template <class S, class C, class D>
constexpr bool kDirect = std::is_same_v<D, NoDelta> || std::is_same_v<D, CodedSource<S, RowCode::b1>> ||
                         std::is_same_v<C, PlainSource<S, DType::bf16>>;

template <class S>
void project_composed(const ProjectionRange& r, const RowStarts& starts) {
  with_sources<S>(*r.projection.weight, [&]<class C, class D>() {
    if constexpr (kDirect<S, C, D>) {
      if (r.x.count == 1) return project_direct<S, C, D, 1>(r, starts);
      if (r.x.count == kDirectRows) return project_direct<S, C, D, 2>(r, starts);
    }
    project_expanded<S, C, D>(r, starts);
  });
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
    project_composed<S>(r, starts);
  }
  if (r.lowered.values == nullptr) return;
  project_plain<S>({weight.up, r.lowered, p.out, r.first, r.last}, {.adds = true});
}

}  // namespace
}  // namespace sangam::cpu
