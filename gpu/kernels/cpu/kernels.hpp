// What one instruction set provides: plain functions over ranges, without threads or allocation. Every set
// instantiates the same templates (lanes_*.hpp under tiles), each in a translation unit with its own flags.
#pragma once

#include <cstdint>

#include "gpu/kernels/ops.hpp"

namespace sangam::cpu {

/// Activations arranged for the weights' type: (count, stride), padded with zeros to whole vectors.
struct PackedRows {
  const float* values = nullptr;
  std::int64_t count = 0;
  std::int64_t stride = 0;
};

/// Output rows [first, last) of one projection.
struct ProjectionRange {
  PackedRows x;
  Projection projection;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

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
  std::int64_t step;  ///< Packed rows are padded to a multiple of this.

  void (*pack)(const float* x, std::int64_t width, DType weights, float* packed);
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
