// A tensor as a checkpoint stores it: bytes with a type and a shape, not owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sangam {

enum class DType : std::uint8_t { bf16, f16, f32, i8, u8, i32, i64 };

/// Size of one element.
[[nodiscard]] constexpr std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::i8:
    case DType::u8: return 1;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::f32:
    case DType::i32: return 4;
    case DType::i64: return 8;
  }
  return 0;
}

/// As safetensors spells it.
[[nodiscard]] constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::bf16: return "BF16";
    case DType::f16: return "F16";
    case DType::f32: return "F32";
    case DType::i8: return "I8";
    case DType::u8: return "U8";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
  }
  return "";
}

/// Row-major; aligned only as the file happens to be. `bytes` belongs to the checkpoint or the pool that made
/// the view.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

}  // namespace sangam
