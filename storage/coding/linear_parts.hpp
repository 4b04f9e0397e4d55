// By which tensors a checkpoint stores a linear map: their names say the format. For a map P, for example
// model.layers.0.mlp.up_proj:
//   P.weight                           bf16, f16 or f32 (rows, columns), or instead of it
//   P.weight.b1|b2|b3|b4|b8            U8 (rows, row_bytes): coded
//   P.delta.b1|b2|b3|b4|b8             U8 (rows, row_bytes): added to the rows' multiples
//   P.row_scale, P.row_shift           F32 (rows): the multiples, and what the sum of the input is times
//   P.low_rank.down, P.low_rank.up     bf16, f16 or f32 (rank, columns) and (rows, rank): both or none
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/tensor.hpp"
#include "storage/coding/row_code.hpp"

namespace sangam {

/// A tensor by its name; none: the checkpoint has no such one. Only shapes are looked at.
using TensorLookup = std::function<std::optional<TensorView>(std::string_view name)>;

struct LinearSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool is_table = false;  ///< Rows are looked up as well: no part may depend on an input.
};

struct LinearPart {
  std::string name;  ///< Empty: the map has no such part.
  std::vector<std::int64_t> shape{};
  std::optional<DType> dtype{};   ///< None: bf16, f16 or f32.
  std::optional<RowCode> code{};

  [[nodiscard]] bool exists() const { return !name.empty(); }
};

struct LinearParts {
  LinearPart canonical;
  LinearPart delta{};
  LinearPart row_scale{};
  LinearPart row_shift{};
  LinearPart down{};
  LinearPart up{};

  /// Those that exist.
  [[nodiscard]] std::vector<LinearPart> all() const;
};

/// The parts of map `prefix`, as they must be: whether they have that type and shape is for the caller to check. Without
/// any weight it is P.weight, which the caller finds missing. `invalid_input`, by name, where parts exclude each other or
/// lack one another.
[[nodiscard]] Result<LinearParts> find_linear_parts(const std::string& prefix, const LinearSize& size,
                                                    const TensorLookup& lookup);

/// Whether a tensor of `type` may be a part of type `wanted`.
[[nodiscard]] bool has_type(const std::optional<DType>& wanted, DType type);

}  // namespace sangam
