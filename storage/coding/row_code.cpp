// Codes one by one, as the header says: kernels take whole vectors of them.
#include "storage/coding/row_code.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "messages/vocabulary/assert.hpp"
#include "storage/checkpoint/widened.hpp"

namespace sangam {
namespace {

constexpr std::array<float, 2> kOneBit = {-1.0f, 1.0f};  // Of a unit normal 0.7979, which the scale takes in.
constexpr std::array<float, 4> kTwoBits = {-1.5104f, -0.4528f, 0.4528f, 1.5104f};
constexpr std::array<float, 8> kThreeBits = {-2.1519f, -1.3439f, -0.7560f, -0.2451f,
                                             0.2451f,  0.7560f,  1.3439f,  2.1519f};
constexpr std::array<float, 16> kFourBits = {-2.7326f, -2.0690f, -1.6180f, -1.2562f, -0.9423f, -0.6568f,
                                             -0.3880f, -0.1284f, 0.1284f,  0.3880f,  0.6568f,  0.9423f,
                                             1.2562f,  1.6180f,  2.0690f,  2.7326f};
constexpr std::array<float, 256> kEightBits = [] {
  std::array<float, 256> all{};
  for (int i = 0; i < 256; ++i) all[std::size_t(i)] = float(i - 128);
  return all;
}();

struct Kind {
  RowCode code;
  std::string_view suffix;
  std::span<const float> levels;
};
constexpr Kind kKinds[] = {{RowCode::b1, "b1", kOneBit},
                           {RowCode::b2, "b2", kTwoBits},
                           {RowCode::b3, "b3", kThreeBits},
                           {RowCode::b4, "b4", kFourBits},
                           {RowCode::b8, "b8", kEightBits}};

const Kind& kind_of(RowCode code) { return kKinds[std::size_t(code)]; }

/// `bits` of a code at bits place * bits and on of the bytes at `at`.
void put(std::byte* at, std::size_t place, int bits, unsigned part) {
  const std::size_t bit = place * std::size_t(bits);
  at[bit / 8] |= std::byte(part << (bit % 8));
}
unsigned get(const std::byte* at, std::size_t place, int bits) {
  const std::size_t bit = place * std::size_t(bits);
  return (std::to_integer<unsigned>(at[bit / 8]) >> (bit % 8)) & ((1u << bits) - 1u);
}

constexpr std::size_t kUpperBits = 8;  // Of a group of three bits: where they begin.

std::size_t place_of(RowCode code, std::size_t k) { return code == RowCode::b4 ? k : k % 2 * 16 + k / 2; }

void put_code(RowCode code, std::byte* group, std::size_t k, unsigned value) {
  const std::size_t place = place_of(code, k);
  if (code != RowCode::b3) return put(group, place, bits_of(code), value);
  put(group, place, 2, value & 3u);
  put(group + kUpperBits, place, 1, value >> 2);
}
std::uint8_t get_code(RowCode code, const std::byte* group, std::size_t k) {
  const std::size_t place = place_of(code, k);
  if (code != RowCode::b3) return std::uint8_t(get(group, place, bits_of(code)));
  return std::uint8_t(get(group, place, 2) | get(group + kUpperBits, place, 1) << 2);
}

}  // namespace

std::span<const float> levels(RowCode code) { return kind_of(code).levels; }
std::string_view suffix_of(RowCode code) { return kind_of(code).suffix; }

std::optional<RowCode> row_code_named(std::string_view suffix) {
  for (const Kind& kind : kKinds) {
    if (kind.suffix == suffix) return kind.code;
  }
  return std::nullopt;
}

void pack_row(RowCode code, const CodedRow& row, std::span<std::byte> out) {
  const auto columns = std::int64_t(row.codes.size());
  const auto stride = std::size_t(group_stride(code));
  SANGAM_ASSERT(out.size() == row_bytes(code, columns) && row.group_scales.size() == std::size_t(groups_of(columns)),
                out.size(), columns);
  std::fill(out.begin(), out.end(), std::byte{});
  std::memcpy(out.data(), &row.row_scale, kRowHeader);
  std::byte* groups = out.data() + kRowHeader;
  for (std::size_t g = 0; g < row.group_scales.size(); ++g) groups[g * stride] = std::byte{row.group_scales[g]};
  for (std::size_t k = 0; k < row.codes.size(); ++k) {
    put_code(code, groups + k / kCodeGroup * stride + 1, k % kCodeGroup, row.codes[k]);
  }
}

CodedRow unpack_row(RowCode code, std::span<const std::byte> bytes, std::int64_t columns) {
  SANGAM_ASSERT(bytes.size() == row_bytes(code, columns), bytes.size(), columns);
  const auto stride = std::size_t(group_stride(code));
  CodedRow row{0, std::vector<std::uint8_t>(std::size_t(groups_of(columns))),
               std::vector<std::uint8_t>(std::size_t(columns))};
  std::memcpy(&row.row_scale, bytes.data(), kRowHeader);
  const std::byte* groups = bytes.data() + kRowHeader;
  for (std::size_t g = 0; g < row.group_scales.size(); ++g) {
    row.group_scales[g] = std::to_integer<std::uint8_t>(groups[g * stride]);
  }
  for (std::size_t k = 0; k < row.codes.size(); ++k) {
    row.codes[k] = get_code(code, groups + k / kCodeGroup * stride + 1, k % kCodeGroup);
  }
  return row;
}

void decode_row(RowCode code, std::span<const std::byte> bytes, std::span<float> out) {
  const CodedRow row = unpack_row(code, bytes, std::int64_t(out.size()));
  const float unit = half_value(row.row_scale);
  const std::span<const float> values = levels(code);
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = unit * float(row.group_scales[k / kCodeGroup]) * values[row.codes[k]];
  }
}

}  // namespace sangam
