// Rows of weights in few bits: the bytes that the merger writes and the kernels read.
//
// A stored row is its scale (2 bytes, an IEEE half, little-endian) and then, for each group of 32 columns, the group's
// scale (1 byte) and its codes, so that a row is one stream. Kernels take the even columns of a group apart from the odd
// ones, as they do with bf16, and the codes lie ready for that. With p = k % 2 * 16 + k / 2 for column k of a group:
//   1 bit   bit p of 4 bytes              2 bits  bits 2p and 2p + 1 of 8 bytes
//   3 bits  its lower two bits as above, its upper one at bit p of the 4 bytes that follow
//   4 bits  byte k / 2 of 16: the lower half for an even column, the upper one for the odd column after it
//   8 bits  byte p of 32
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sangam {

/// How many bits a weight's code has.
enum class RowCode : std::uint8_t { b1, b2, b3, b4, b8 };

/// Columns that share a scale. The last group of a row is padded to as many.
inline constexpr std::int64_t kCodeGroup = 32;

/// What codes stand for, ascending. One to four bits: the levels with the least squared error for a unit normal (Max,
/// 1960). Eight: the integers from -128.
[[nodiscard]] std::span<const float> levels(RowCode code);
[[nodiscard]] constexpr int bits_of(RowCode code) { return code == RowCode::b8 ? 8 : int(code) + 1; }

/// Bytes before the first group, and from one group to the next: its scale and its codes.
inline constexpr std::int64_t kRowHeader = 2;
[[nodiscard]] constexpr std::int64_t group_stride(RowCode code) { return 1 + kCodeGroup * bits_of(code) / 8; }
[[nodiscard]] constexpr std::int64_t groups_of(std::int64_t columns) { return (columns + kCodeGroup - 1) / kCodeGroup; }
[[nodiscard]] constexpr std::size_t row_bytes(RowCode code, std::int64_t columns) {
  return std::size_t(kRowHeader + groups_of(columns) * group_stride(code));
}

/// A row before it is packed. The weight of column k, in group g = k / 32, is
/// (float(row_scale) * float(group_scales[g])) * levels[codes[k]], both products in fp32.
struct CodedRow {
  std::uint16_t row_scale = 0;             ///< An IEEE half, finite and not negative.
  std::vector<std::uint8_t> group_scales;  ///< By group.
  std::vector<std::uint8_t> codes;         ///< By column.

  bool operator==(const CodedRow&) const = default;
};

/// `out` has row_bytes(code, columns) bytes.
void pack_row(RowCode code, const CodedRow& row, std::span<std::byte> out);
[[nodiscard]] CodedRow unpack_row(RowCode code, std::span<const std::byte> bytes, std::int64_t columns);
/// What the kernels see; `out` has as many floats as the row has columns.
void decode_row(RowCode code, std::span<const std::byte> bytes, std::span<float> out);

/// "b4" and back.
[[nodiscard]] std::string_view suffix_of(RowCode code);
[[nodiscard]] std::optional<RowCode> row_code_named(std::string_view suffix);

}  // namespace sangam
