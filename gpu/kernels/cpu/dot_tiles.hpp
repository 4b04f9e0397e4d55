// Rows of weights times rows of activations, as tiles of dot products. Whatever the tile, each product is
// summed in one order: lane by lane over a block of columns, then a fixed tree over the lanes, then block
// after block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "gpu/kernels/cpu/kernels.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam::cpu {
namespace {

// A weight type gives one step of a row (two vectors) as fp32. For bf16 the two are the even and the odd
// elements, which cost one instruction each; packed activations are in the same order.
template <class S>
struct Bf16Weights {
  static constexpr std::int64_t kBytes = 2;
  static typename S::Vec first(const std::byte* p) { return S::bf16_even(p); }
  static typename S::Vec second(const std::byte* p) { return S::bf16_odd(p); }
};
template <class S>
struct HalfWeights {
  static constexpr std::int64_t kBytes = 2;
  static typename S::Vec first(const std::byte* p) { return S::load_half(p); }
  static typename S::Vec second(const std::byte* p) { return S::load_half(p + S::kLanes * kBytes); }
};
template <class S>
struct FloatWeights {
  static constexpr std::int64_t kBytes = 4;
  static typename S::Vec first(const std::byte* p) { return S::load(reinterpret_cast<const float*>(p)); }
  static typename S::Vec second(const std::byte* p) { return first(p + S::kLanes * kBytes); }
};

/// A block of columns of both operands. `x` starts at the block's first column.
struct DotBlock {
  const std::byte* weights;
  std::int64_t row_bytes;  ///< From one weight row to the next.
  std::int64_t columns;
  const float* x;
  std::int64_t x_stride;
  float* out;
  std::int64_t out_stride;
  const std::byte* next = nullptr;  ///< What to fetch meanwhile: weights that are needed soon, or null.
  std::int64_t next_bytes = 0;
};

/// What a tile fetches into cache while it computes: equally many lines with each step, in the order of their
/// addresses, which is the order that memory serves fastest.
struct Ahead {
  static constexpr std::int64_t kLine = 64;
  const std::byte* at = nullptr;
  std::int64_t lines_per_step = 0;

  /// Into L2: what is next seldom fits into L1 beside what is in use.
  __attribute__((always_inline)) void fetch() {
    for (std::int64_t i = 0; i < lines_per_step; ++i, at += kLine) __builtin_prefetch(at, 0, 2);
  }
};

/// One tile's height of activation rows, from `first` on: number `index` of `count` that pass over a block.
struct RowTile {
  std::int64_t first;
  std::int64_t index;
  std::int64_t count;

  /// All tiles of all passes share out what comes next, so that memory is as busy in the last as in the first.
  [[nodiscard]] Ahead ahead(const DotBlock& b, std::int64_t tile, std::int64_t tiles,
                            std::int64_t steps) const {
    if (b.next == nullptr || steps == 0) return {};
    const std::int64_t lines = b.next_bytes / Ahead::kLine + 1;
    const std::int64_t first_line = lines * (index * tiles + tile) / (tiles * count);
    const std::int64_t end_line = lines * (index * tiles + tile + 1) / (tiles * count);
    return {b.next + first_line * Ahead::kLine, (end_line - first_line + steps - 1) / steps};
  }
};

/// What becomes of a sum: the rows' factors, and what it is added to. Pointers to rows are to the block's first one.
struct Start {
  const float* bias = nullptr;
  bool adds = false;
  const float* scale = nullptr;
  const float* shift = nullptr;  ///< Times
  const float* sums = nullptr;   ///< (activation rows): the sums of their values.

  [[nodiscard]] float with(float sum, const float* out, std::int64_t n, std::int64_t m) const {
    if (scale != nullptr) sum *= scale[n];
    if (shift != nullptr) sum += shift[n] * sums[m];
    if (bias == nullptr) return (adds ? *out : 0.0f) + sum;
    return (adds ? *out + bias[n] : bias[n]) + sum;
  }
};

/// The last, incomplete step of `count` rows, padded with zeros, so that nothing behind the rows is read.
template <std::int64_t kRowBytes>
__attribute__((noinline)) void copy_tail(const std::byte* w, std::int64_t row_bytes, std::int64_t count,
                                         std::int64_t bytes, std::byte* padded) {
  __builtin_memset(padded, 0, std::size_t(count * kRowBytes));
  for (std::int64_t n = 0; n < count; ++n) {
    __builtin_memcpy(padded + n * kRowBytes, w + n * row_bytes, std::size_t(bytes));
  }
}

/// f(0), ..., f(N - 1) with constants, so that arrays which only they index become registers.
template <int N, class F>
__attribute__((always_inline)) inline void each(F f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

/// N weight rows by M activation rows.
template <class S, class W, int N, int M>
struct Tile {
  using Vec = typename S::Vec;
  static constexpr std::int64_t kStep = 2 * S::kLanes;
  static constexpr std::int64_t kStepBytes = kStep * W::kBytes;
  Vec sums[N][M];

  /// One step of columns: the same two operations on each accumulator in every tile shape.
  __attribute__((always_inline)) void step(const std::byte* w, std::int64_t row_bytes, const float* x,
                                           std::int64_t x_stride) {
    Vec row[N];
    each<N>([&](auto n) { row[n] = W::first(w + n * row_bytes); });
    each<M>([&](auto m) {
      const Vec column = S::load_once(x + m * x_stride);
      each<N>([&](auto n) { sums[n][m] = S::mul_add(row[n], column, sums[n][m]); });
    });
    each<N>([&](auto n) { row[n] = W::second(w + n * row_bytes); });
    each<M>([&](auto m) {
      const Vec column = S::load_once(x + m * x_stride + S::kLanes);
      each<N>([&](auto n) { sums[n][m] = S::mul_add(row[n], column, sums[n][m]); });
    });
  }

  /// The tail is copied first: a call while sums are held would have them live in memory.
  __attribute__((always_inline)) void run(const DotBlock& b, std::int64_t n0, std::int64_t m0,
                                          Ahead ahead) {
    alignas(64) std::byte tail[N * kStepBytes];
    const std::byte* w = b.weights + n0 * b.row_bytes;
    const float* x = b.x + m0 * b.x_stride;
    const std::int64_t rest = b.columns % kStep;
    if (rest != 0)
      copy_tail<kStepBytes>(w + (b.columns - rest) * W::kBytes, b.row_bytes, N, rest * W::kBytes, tail);
    each<N>([&](auto n) { each<M>([&](auto m) { sums[n][m] = S::zero(); }); });
    for (std::int64_t steps = b.columns / kStep; steps > 0; --steps, w += kStepBytes, x += kStep) {
      ahead.fetch();
      step(w, b.row_bytes, x, b.x_stride);
    }
    if (rest != 0) step(tail, kStepBytes, x, b.x_stride);
  }

  __attribute__((always_inline)) void add_to(const DotBlock& b, const Start& start, std::int64_t n0,
                                             std::int64_t m0) const {
    float folded[N * M];  // (M, N)
    each<N * M / 4>([&](auto four) {
      constexpr int i = four * 4;
      S::sum_four(sums[i % N][i / N], sums[(i + 1) % N][(i + 1) / N], sums[(i + 2) % N][(i + 2) / N],
                  sums[(i + 3) % N][(i + 3) / N], folded + i);
    });
    each<N * M % 4>([&](auto rest) {
      constexpr int i = N * M / 4 * 4 + rest;
      folded[i] = S::sum(sums[i % N][i / N]);
    });
    for (int m = 0; m < M; ++m) {
      float* out = b.out + (m0 + m) * b.out_stride + n0;
      for (int n = 0; n < N; ++n) out[n] = start.with(folded[m * N + n], out + n, n0 + n, m0 + m);
    }
  }
};

/// All weight rows [0, n_count) against M activation rows, N at a time while there are so many.
template <class S, class W, int N, int M>
void dot_rows(const DotBlock& b, const Start& start, std::int64_t n_count, const RowTile& rows) {
  const std::int64_t tiles = n_count / N;
  const std::int64_t steps = b.columns / (2 * S::kLanes);
  for (std::int64_t t = 0; t < tiles; ++t) {
    Tile<S, W, N, M> tile;
    tile.run(b, t * N, rows.first, rows.ahead(b, t, tiles, steps));
    tile.add_to(b, start, t * N, rows.first);
  }
  for (std::int64_t n = tiles * N; n < n_count; ++n) {
    Tile<S, W, 1, M> tile;
    tile.run(b, n, rows.first, {});
    tile.add_to(b, start, n, rows.first);
  }
}

/// Beside one or two activation rows, memory is the limit, and it serves few weight rows at once faster than many:
/// no more than it takes to hide the latency of the sums.
template <class S, class W, int M = S::kTileRows>
void dot_rows(std::int64_t height, const DotBlock& b, const Start& start, std::int64_t n_count,
              const RowTile& rows) {
  if constexpr (M > 1) {
    if (height < M) return dot_rows<S, W, M - 1>(height, b, start, n_count, rows);
  }
  if constexpr (M <= 2) {
    if (b.next != nullptr) return dot_rows<S, W, S::streamed_rows(M), M>(b, start, n_count, rows);
  }
  dot_rows<S, W, S::weight_rows(M), M>(b, start, n_count, rows);
}

/// All of (n_count, m_count); activation rows are cut into tiles of nearly equal height.
template <class S, class W>
void dot_block(const DotBlock& b, const Start& start, std::int64_t n_count, std::int64_t m_count) {
  const std::int64_t tiles = (m_count + S::kTileRows - 1) / S::kTileRows;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t first = m_count * t / tiles;
    dot_rows<S, W>(m_count * (t + 1) / tiles - first, b, start, n_count, {first, t, tiles});
  }
}

/// With more activation rows than this, arithmetic takes so long that the processor's own prefetching is enough.
constexpr std::int64_t kFewRows = 64;
/// Weight rows that stay in cache while all activation rows pass. Few: they and those that are fetched for the
/// next block fit into L2, however long they are. Many: a block of their columns does (256 KB in bf16), and the
/// activations, which are then the larger part, are read less often.
constexpr std::int64_t row_block(std::int64_t count) {
  return count <= kFewRows ? 16 : 128;
}

/// Rows [first, last) of a plain matrix.
struct MatrixRows {
  const Matrix& matrix;
  PackedRows x;
  float* out;
  std::int64_t first;
  std::int64_t last;
};

/// The start of rows' sums; columns are summed block after block, and what belongs to a row once goes to the first one's.
struct RowStarts {
  const float* bias = nullptr;  ///< (matrix rows), as the others; null where there are none.
  bool adds = false;
  const float* scale = nullptr;
  const float* shift = nullptr;
  const float* sums = nullptr;

  [[nodiscard]] Start at(std::int64_t row, std::int64_t column) const {
    const auto from = [row](const float* rows) { return rows == nullptr ? nullptr : rows + row; };
    if (column > 0) return {.adds = true, .scale = from(scale)};
    return {from(bias), adds, from(scale), from(shift), sums};
  }
};

template <class S, class W>
void project_typed(const MatrixRows& r, const RowStarts& starts) {
  const Matrix& matrix = r.matrix;
  const std::int64_t row_bytes = matrix.columns * W::kBytes;
  const std::int64_t step = row_block(r.x.count);
  for (std::int64_t row = r.first; row < r.last; row += step) {
    const std::byte* weights = matrix.bytes + row * row_bytes;
    const std::byte* next = weights + step * row_bytes;
    for (std::int64_t k = 0; k < matrix.columns; k += kColumnBlock, weights += kColumnBlock * W::kBytes) {
      const std::int64_t left = matrix.columns - k;
      const bool ends = left <= kColumnBlock;
      const DotBlock block{
          .weights = weights,
          .row_bytes = row_bytes,
          .columns = ends ? left : kColumnBlock,
          .x = r.x.values + k,
          .x_stride = r.x.stride,
          .out = r.out + row,
          .out_stride = matrix.rows,
          .next = r.x.count <= kFewRows ? next + k * W::kBytes * step : nullptr,
          .next_bytes = (ends ? left : kColumnBlock) * W::kBytes * step};
      dot_block<S, W>(block, starts.at(row, k), row + step <= r.last ? step : r.last - row, r.x.count);
    }
  }
}

template <class S>
void project_plain(const MatrixRows& r, const RowStarts& starts) {
  switch (r.matrix.dtype) {
    case DType::bf16: return project_typed<S, Bf16Weights<S>>(r, starts);
    case DType::f16: return project_typed<S, HalfWeights<S>>(r, starts);
    default: return project_typed<S, FloatWeights<S>>(r, starts);
  }
}

/// One row of activations in the order in which the weights' steps give their elements, to the end of a group.
template <class S>
void pack(const float* x, std::int64_t width, LaneOrder order, float* packed) {
  constexpr std::int64_t kStep = 2 * S::kLanes;
  std::int64_t k = 0;
  if (order == LaneOrder::even_odd) {
    for (; k + kStep <= width; k += kStep) {
      for (int lane = 0; lane < S::kLanes; ++lane) {
        packed[k + lane] = x[k + 2 * lane];
        packed[k + S::kLanes + lane] = x[k + 2 * lane + 1];
      }
    }
  } else {
    const std::int64_t whole = width / kStep * kStep;
    __builtin_memcpy(packed, x, std::size_t(whole) * sizeof(float));
    k = whole;
  }
  for (const std::int64_t end = groups_of(width) * kCodeGroup; k < end; k += kStep) {
    for (int i = 0; i < kStep; ++i) {
      const std::int64_t from = k + (order == LaneOrder::even_odd ? 2 * (i % S::kLanes) + i / S::kLanes : i);
      packed[k + i] = from < width ? x[from] : 0.0f;
    }
  }
}

}  // namespace
}  // namespace sangam::cpu
