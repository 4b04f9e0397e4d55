// Rows of weights in few bits: the bytes that the merger writes and the kernels read.
//
// A stored row is its scale (2 bytes, an IEEE half), a scale for each group of 32 columns (1 byte), and the codes, group
// after group, each padded to whole bytes: in little-endian order the code of column k of a group of `bits` lies at bit
// k * bits of the group's bytes, for 3 bits as its lower two bits (8 bytes) followed by its upper ones (4 bytes).
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
[[nodiscard]] int bits_of(RowCode code);
[[nodiscard]] std::size_t row_bytes(RowCode code, std::int64_t columns);

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
