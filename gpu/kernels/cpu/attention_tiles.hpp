// Causal attention over paged 16-bit K and V. Positions are taken in blocks that are aligned to the sequence,
// not to pages or steps, with a running maximum and sum; so the order of every sum depends on the position
// alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/kernels/cpu/dot_tiles.hpp"
#include "gpu/kernels/cpu/row_kernels.hpp"

namespace sangam::cpu {
namespace {

constexpr std::int64_t kPositionBlock = 64;

/// The states of (row, query head) pairs while the blocks pass. Everything lies in the caller's scratch.
template <class S>
class AttentionTile {
 public:
  explicit AttentionTile(const AttentionRange& range);
  void run();
  static std::int64_t scratch(std::int64_t pairs, std::int64_t head_dim) {
    return pairs * (2 * padded(head_dim) + kPositionBlock + 2);
  }

 private:
  using Vec = typename S::Vec;
  static constexpr std::int64_t kStep = 2 * S::kLanes;
  static std::int64_t padded(std::int64_t width) { return (width + kStep - 1) / kStep * kStep; }

  void load_queries();
  void dot_keys(std::int64_t begin, std::int64_t end);
  void soften(std::int64_t pair, std::int64_t begin, std::int64_t end);
  void fade(std::int64_t pair, float largest);
  void add_values(std::int64_t begin, std::int64_t end);
  template <int P = S::kTileRows>
  void add_values(std::int64_t height, std::int64_t pair, std::int64_t begin, std::int64_t end);
  template <int P, int V, bool kWhole>
  void add_values(std::int64_t pair, std::int64_t lane, std::int64_t begin, std::int64_t end);
  void write_out();

  static Vec load_some_halves(const std::byte* p, std::int64_t count) {
    std::uint16_t padded[S::kLanes] = {};
    for (std::int64_t i = 0; i < count; ++i) __builtin_memcpy(padded + i, p + i * 2, 2);
    return S::load_half(reinterpret_cast<const std::byte*>(padded));
  }
  [[nodiscard]] std::int64_t position_of(std::int64_t pair) const {
    return range_.sequence->position + range_.first + pair / group_;
  }
  /// Element offset of a (row, query head) pair in q and out.
  [[nodiscard]] std::int64_t offset_of(std::int64_t pair) const {
    const std::int64_t row = range_.first + pair / group_;
    return (row * range_.shape->heads + range_.kv_head * group_ + pair % group_) * dim_;
  }
  /// Calls f(first position, count, bytes of its element row) for each page that [begin, end) touches.
  template <class F>
  void for_pages(std::int64_t begin, std::int64_t end, std::int64_t offset, F&& f) const {
    const KvLayer& kv = *range_.kv;
    const std::int64_t per_page = kv.layout.tokens_per_page;
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t page = at / per_page;
      const std::int64_t stop = (page + 1) * per_page < end ? (page + 1) * per_page : end;
      const std::byte* base =
          kv.arena.base + std::size_t(range_.sequence->pages.data()[page]) * kv.arena.page_bytes;
      f(at, stop - at, base + (offset + (at - page * per_page) * dim_) * 2);
      at = stop;
    }
  }

  const AttentionRange& range_;
  std::int64_t dim_, stride_, group_, pairs_;
  float* queries_;  ///< (pairs, stride)
  float* sums_;     ///< (pairs, stride), weighted sums of values
  float* scores_;   ///< (pairs, kPositionBlock)
  float* largest_;  ///< (pairs)
  float* total_;    ///< (pairs)
};

template <class S>
AttentionTile<S>::AttentionTile(const AttentionRange& range)
    : range_(range),
      dim_(range.kv->layout.head_dim),
      stride_(padded(dim_)),
      group_(range.shape->heads / range.kv->layout.kv_heads),
      pairs_(range.count * group_),
      queries_(range.scratch),
      sums_(queries_ + pairs_ * stride_),
      scores_(sums_ + pairs_ * stride_),
      largest_(scores_ + pairs_ * kPositionBlock),
      total_(largest_ + pairs_) {}

template <class S>
void AttentionTile<S>::run() {
  load_queries();
  const std::int64_t first = position_of(0);
  const std::int64_t last = position_of(pairs_ - 1);
  const std::int64_t window = range_.shape->window;
  const std::int64_t oldest = window > 0 && first >= window ? first - window + 1 : 0;
  for (std::int64_t begin = oldest / kPositionBlock * kPositionBlock; begin <= last;
       begin += kPositionBlock) {
    const std::int64_t end = begin + kPositionBlock <= last ? begin + kPositionBlock : last + 1;
    // Pages before the oldest visible position may be gone.
    const std::int64_t from = begin < oldest ? oldest : begin;
    dot_keys(from, end);
    for (std::int64_t pair = 0; pair < pairs_; ++pair) soften(pair, begin, end);
    add_values(from, end);
  }
  write_out();
}

template <class S>
void AttentionTile<S>::load_queries() {
  for (std::int64_t pair = 0; pair < pairs_; ++pair) {
    const float* q = range_.q + offset_of(pair);
    float* query = queries_ + pair * stride_;
    float* sum = sums_ + pair * stride_;
    for (std::int64_t i = 0; i < dim_; ++i) query[i] = q[i] * range_.shape->scale;
    for (std::int64_t i = dim_; i < stride_; ++i) query[i] = 0.0f;
    for (std::int64_t i = 0; i < stride_; ++i) sum[i] = 0.0f;
    largest_[pair] = -__builtin_inff();
    total_[pair] = 0.0f;
  }
}

template <class S>
void AttentionTile<S>::dot_keys(std::int64_t begin, std::int64_t end) {
  const std::int64_t offset = range_.kv->layout.key_offset(range_.kv->layer, range_.kv_head);
  for_pages(begin, end, offset, [&](std::int64_t at, std::int64_t count, const std::byte* keys) {
    const DotBlock block{.weights = keys,
                         .row_bytes = dim_ * 2,
                         .columns = dim_,
                         .x = queries_,
                         .x_stride = stride_,
                         .out = scores_ + at % kPositionBlock,
                         .out_stride = kPositionBlock};
    dot_block<S, HalfWeights<S>>(block, Start{}, count, pairs_);
  });
}

/// Scores of [begin, end) become weights e^(score - largest), zero where the pair must not look.
template <class S>
void AttentionTile<S>::soften(std::int64_t pair, std::int64_t begin, std::int64_t end) {
  float* scores = scores_ + pair * kPositionBlock;
  const std::int64_t position = position_of(pair);
  const std::int64_t window = range_.shape->window;
  const std::int64_t oldest = window > 0 && position >= window ? position - window + 1 : 0;
  // Of the block's positions the pair sees [from, to): none where it comes before the block or long after.
  const auto within = [&](std::int64_t at) { return (at < begin ? begin : at < end ? at : end) - begin; };
  const std::int64_t from = within(oldest);
  const std::int64_t to = within(position + 1);
  const auto fill_outside = [&](float value) {
    for (std::int64_t i = 0; i < from; ++i) scores[i] = value;
    for (std::int64_t i = to; i < kPositionBlock; ++i) scores[i] = value;
  };
  fill_outside(-__builtin_inff());
  Vec largest = S::all(largest_[pair]);
  for (std::int64_t i = 0; i < kPositionBlock; i += S::kLanes) largest = S::max(S::load(scores + i), largest);
  if (from < to) {
    largest = S::all(S::largest(largest));
    for (std::int64_t i = 0; i < kPositionBlock; i += S::kLanes) {
      S::store(scores + i, exponential<S>(S::sub(S::load(scores + i), largest)));
    }
  }
  fill_outside(0.0f);
  if (from >= to) return;
  Vec added = S::zero();
  for (std::int64_t i = 0; i < kPositionBlock; i += S::kLanes) added = S::add(added, S::load(scores + i));
  fade(pair, S::largest(largest));
  total_[pair] += S::sum(added);
}

/// What was summed under a smaller maximum shrinks to the new one.
template <class S>
void AttentionTile<S>::fade(std::int64_t pair, float largest) {
  if (largest <= largest_[pair]) return;
  const Vec factor = exponential<S>(S::all(largest_[pair] - largest));
  float* sum = sums_ + pair * stride_;
  for (std::int64_t i = 0; i < stride_; i += S::kLanes) S::store(sum + i, S::mul(S::load(sum + i), factor));
  total_[pair] *= S::largest(factor);
  largest_[pair] = largest;
}

/// Pairs are cut into tiles of nearly equal height, as in dot_block.
template <class S>
void AttentionTile<S>::add_values(std::int64_t begin, std::int64_t end) {
  const std::int64_t tiles = (pairs_ + S::kTileRows - 1) / S::kTileRows;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t pair = pairs_ * t / tiles;
    add_values(pairs_ * (t + 1) / tiles - pair, pair, begin, end);
  }
}

template <class S>
template <int P>
void AttentionTile<S>::add_values(std::int64_t height, std::int64_t pair, std::int64_t begin,
                                  std::int64_t end) {
  if constexpr (P > 1) {
    if (height < P) return add_values<P - 1>(height, pair, begin, end);
  }
  std::int64_t lane = 0;
  for (; lane + 2 * S::kLanes <= dim_; lane += 2 * S::kLanes) add_values<P, 2, true>(pair, lane, begin, end);
  for (; lane + S::kLanes <= dim_; lane += S::kLanes) add_values<P, 1, true>(pair, lane, begin, end);
  if (lane < dim_) add_values<P, 1, false>(pair, lane, begin, end);
}

/// P pairs by V vectors of the head, over positions in their order; or the head's last, incomplete vector.
template <class S>
template <int P, int V, bool kWhole>
void AttentionTile<S>::add_values(std::int64_t pair, std::int64_t lane, std::int64_t begin,
                                  std::int64_t end) {
  Vec sums[P][V];
  float* target = sums_ + pair * stride_ + lane;
  each<P>(
      [&](auto p) { each<V>([&](auto v) { sums[p][v] = S::load(target + p * stride_ + v * S::kLanes); }); });
  const std::int64_t offset = range_.kv->layout.value_offset(range_.kv->layer, range_.kv_head) + lane;
  for_pages(begin, end, offset, [&](std::int64_t at, std::int64_t count, const std::byte* values) {
    const float* weights = scores_ + pair * kPositionBlock + at % kPositionBlock;
    for (std::int64_t i = 0; i < count; ++i, values += dim_ * 2) {
      each<V>([&](auto v) {
        const Vec value =
            kWhole ? S::load_half(values + v * S::kLanes * 2) : load_some_halves(values, dim_ - lane);
        each<P>([&](auto p) {
          sums[p][v] = S::mul_add(S::all(weights[p * kPositionBlock + i]), value, sums[p][v]);
        });
      });
    }
  });
  each<P>(
      [&](auto p) { each<V>([&](auto v) { S::store(target + p * stride_ + v * S::kLanes, sums[p][v]); }); });
}

template <class S>
void AttentionTile<S>::write_out() {
  for (std::int64_t pair = 0; pair < pairs_; ++pair) {
    const float share = 1.0f / total_[pair];
    float* out = range_.out + offset_of(pair);
    for (std::int64_t i = 0; i < dim_; ++i) out[i] = sums_[pair * stride_ + i] * share;
  }
}

template <class S>
void attend(const AttentionRange& range) {
  AttentionTile<S>(range).run();
}

template <class S>
std::int64_t attention_scratch(std::int64_t pairs, std::int64_t head_dim) {
  return AttentionTile<S>::scratch(pairs, head_dim);
}

}  // namespace
}  // namespace sangam::cpu
