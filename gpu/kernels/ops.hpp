// What a device must be able to compute for a transformer. Each back end implements these few operations; the
// model is written once, over them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/kernels/paged_kv.hpp"
#include "messages/vocabulary/names.hpp"
#include "storage/checkpoint/tensor.hpp"
#include "storage/coding/row_code.hpp"

namespace sangam {

/// A weight as the checkpoint stores it, row-major and not necessarily aligned. Not owned.
struct Matrix {
  const std::byte* bytes = nullptr;  ///< Null: there is none.
  DType dtype = DType::bf16;         ///< bf16, f16 or f32, unless the rows are coded.
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::optional<RowCode> code{};  ///< Each row is one of storage/coding.

  [[nodiscard]] std::int64_t row_stride() const {
    return code ? std::int64_t(row_bytes(*code, columns)) : columns * std::int64_t(bytes_of(dtype));
  }
};

/// A linear map that may share most of its bytes with those of other models:
///   W_row = scale_row canonical_row + delta_row        y = W x + shift sum(x) + up (down x)
struct Linear {
  Matrix canonical;               ///< (rows, columns)
  Matrix delta{};                 ///< (rows, columns), coded; none: zero.
  std::vector<float> scale{};     ///< (rows); empty: ones.
  std::vector<float> shift{};     ///< (rows); empty: zeros.
  Matrix down{};                  ///< (rank, columns), plain; none: zero.
  Matrix up{};                    ///< (rows, rank), plain.
};

/// Activations: (count, width) fp32, rows adjacent.
struct Rows {
  const float* values = nullptr;
  std::int64_t count = 0;
  std::int64_t width = 0;
};

/// One y = W x (+ bias) (+ y) of several that read the same x.
struct Projection {
  const Linear* weight = nullptr;
  const float* bias = nullptr;  ///< (weight rows), or null
  float* out = nullptr;         ///< (row count, weight rows)
  bool adds = false;            ///< Adds to what `out` holds: the residual stream.
};

/// Rotations of the rows of a step: row r turns its heads by (cosine, sine)[r].
struct Rotation {
  const float* cosine = nullptr;  ///< (rows, head_dim / 2)
  const float* sine = nullptr;    ///< (rows, head_dim / 2)
  std::int64_t head_dim = 0;
};

struct AttentionShape {
  std::int64_t heads = 0;   ///< A multiple of the layout's kv_heads; neighbours share one.
  float scale = 0;          ///< Multiplies q before the dot products.
  std::int64_t window = 0;  ///< A row sees this many positions, itself included; 0: all before it.
};

/// All pointers are to memory that the device can reach. The result of a row depends on that row's inputs
/// only, bit for bit: not on the other rows, on how a sequence was cut into steps or pages, or on threads.
/// Two instruction sets may differ in the last bits. One call at a time.
class Ops {
 public:
  virtual ~Ops() = default;

  /// "avx2", "portable"...
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// out (tokens, table columns): the tokens' rows of the table's W.
  virtual void embed(const Linear& table, std::span<const TokenId> tokens, float* out) = 0;

  /// out = x / sqrt(mean(x^2) + epsilon) * weight, per row; `out` may be x itself.
  virtual void rms_norm(const Rows& x, const float* weight, float epsilon, float* out) = 0;

  virtual void linear(const Rows& x, std::span<const Projection> projections) = 0;

  /// Turns `heads` (rows, heads, head_dim) in place; lane i pairs with lane i + head_dim / 2, as HF stores
  /// them.
  virtual void rotate(float* heads, std::int64_t rows, std::int64_t heads_per_row, const Rotation& by) = 0;

  /// Writes k and v (rows, kv_heads, head_dim) into the pages as 16-bit floats; what does not fit saturates.
  virtual void store_kv(const KvLayer& kv, const float* k, const float* v) = 0;

  /// Causal attention of q (rows, heads, head_dim) over the pages, which hold the rows' own k and v already.
  virtual void attention(const KvLayer& kv, const AttentionShape& shape, const float* q, float* out) = 0;

  /// gate = silu(gate) * up
  virtual void swiglu(float* gate, const float* up, std::int64_t count) = 0;
};

}  // namespace sangam
