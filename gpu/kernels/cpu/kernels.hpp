// What one instruction set provides: plain functions over ranges, without threads or allocation. Every set
// instantiates the same templates (lanes_*.hpp under tiles), each in a translation unit with its own flags.
#pragma once

#include <cstdint>

#include "gpu/kernels/ops.hpp"

namespace sangam::cpu {

/// In which order kernels take the columns of weights, and so of activations: as they lie, or the even ones of each
/// step before the odd ones.
enum class LaneOrder : std::uint8_t { adjacent, even_odd };

/// Activations in one order: (count, stride), padded with zeros to a multiple of kCodeGroup.
struct PackedRows {
  const float* values = nullptr;
  std::int64_t count = 0;
  std::int64_t stride = 0;
  const float* sums = nullptr;  ///< (count), each row's own; null where no projection asks for them.
};

/// Output rows [first, last) of one projection.
struct ProjectionRange {
  PackedRows x;        ///< In order_of(the projection's weight).
  PackedRows lowered;  ///< down x in order_of(up); without values where there is no low-rank part.
  Projection projection;
  std::int64_t first = 0;
  std::int64_t last = 0;
  float* scratch = nullptr;  ///< kExpandedFloats, where the weight is not plain.
};

/// Whether tiles of dot products read the matrix as it lies; if not, they read rows that are expanded first.
[[nodiscard]] inline bool is_plain(const Linear& weight) {
  return !weight.canonical.code && weight.delta.bytes == nullptr;
}
[[nodiscard]] inline LaneOrder order_of(const Matrix& plain) {
  return plain.dtype == DType::bf16 ? LaneOrder::even_odd : LaneOrder::adjacent;
}
[[nodiscard]] inline LaneOrder order_of(const Linear& weight) {
  return is_plain(weight) ? order_of(weight.canonical) : LaneOrder::even_odd;
}

/// Columns summed before the lanes are folded: six packed rows of it, beside two of weights, fit into L1.
inline constexpr std::int64_t kColumnBlock = 1024;
/// Rows of weights that are expanded at once, and the floats from one to the next: rows a multiple of 4096 bytes apart
/// would compete for the same lines of L1.
inline constexpr std::int64_t kExpandedRows = 64;
inline constexpr std::int64_t kExpandedStride = kColumnBlock + 16;
inline constexpr std::int64_t kExpandedFloats = kExpandedRows * kExpandedStride;

/// Rows [first, first + count) of one sequence and the query heads that share one kv head.
struct AttentionRange {
  const KvLayer* kv = nullptr;
  const AttentionShape* shape = nullptr;
  const KvRows* sequence = nullptr;
  std::int64_t kv_head = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  const float* q = nullptr;  ///< (rows of the sequence, heads, head_dim)
  float* out = nullptr;      ///< As q.
  float* scratch = nullptr;  ///< attention_scratch() floats
};

/// An upper bound on count * (heads per kv head) of an AttentionRange with more than one row.
inline constexpr std::int64_t kAttentionPairs = 32;

struct Kernels {
  const char* name;

  void (*pack)(const float* x, std::int64_t width, LaneOrder order, float* packed);
  float (*sum)(const float* x, std::int64_t width);
  void (*project)(const ProjectionRange& range);
  void (*attend)(const AttentionRange& range);
  std::int64_t (*attention_scratch)(std::int64_t pairs, std::int64_t head_dim);
  void (*rms_norm)(const Rows& x, const float* weight, float epsilon, float* out);
  void (*rotate)(float* heads, std::int64_t count, const float* cosine, const float* sine,
                 std::int64_t head_dim);
  void (*swiglu)(float* gate, const float* up, std::int64_t count);
  void (*to_half)(const float* values, std::int64_t count, std::uint16_t* out);
  void (*widen)(const std::byte* values, DType dtype, std::int64_t count, float* out);
};

const Kernels& portable_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace sangam::cpu
