// Codes against their definition, worked out here once more.
#include "storage/coding/row_code.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <string>

namespace sangam {
namespace {

constexpr RowCode kCodes[] = {RowCode::b1, RowCode::b2, RowCode::b3, RowCode::b4, RowCode::b8};

double density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }
double below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// Each level is the mean of the normal between the middles to its neighbours: iterated until nothing moves.
std::vector<double> least_error_levels(std::size_t count) {
  std::vector<double> levels;
  for (std::size_t i = 0; i < count; ++i) levels.push_back(-3.0 + 6.0 * (double(i) + 0.5) / double(count));
  for (int round = 0; round < 5'000; ++round) {
    std::vector<double> edges{-9.0};
    for (std::size_t i = 1; i < count; ++i) edges.push_back(0.5 * (levels[i - 1] + levels[i]));
    edges.push_back(9.0);
    for (std::size_t i = 0; i < count; ++i) {
      levels[i] = (density(edges[i]) - density(edges[i + 1])) / (below(edges[i + 1]) - below(edges[i]));
    }
  }
  return levels;
}

CodedRow random_row(RowCode code, std::int64_t columns, std::mt19937& random) {
  CodedRow row;
  row.row_scale = std::uint16_t(random() % 0x7c00u);
  for (std::int64_t g = 0; g < (columns + kCodeGroup - 1) / kCodeGroup; ++g) row.group_scales.push_back(std::uint8_t(random()));
  for (std::int64_t k = 0; k < columns; ++k) row.codes.push_back(std::uint8_t(random() % (1u << bits_of(code))));
  return row;
}

}  // namespace

TEST_CASE("levels have the least squared error for a unit normal") {
  for (const RowCode code : {RowCode::b2, RowCode::b3, RowCode::b4}) {
    const auto expected = least_error_levels(std::size_t(1) << bits_of(code));
    REQUIRE(levels(code).size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(double(levels(code)[i]) - expected[i]) < 6e-5);
  }
  CHECK(std::vector<float>(levels(RowCode::b1).begin(), levels(RowCode::b1).end()) == std::vector<float>{-1.0f, 1.0f});
  CHECK(levels(RowCode::b8).front() == -128.0f);
  CHECK(levels(RowCode::b8).back() == 127.0f);
}

TEST_CASE("a row takes its scale, a byte a group, and its bits, padded to whole groups") {
  CHECK(row_bytes(RowCode::b1, 160) == 2 + 5 * (1 + 4));
  CHECK(row_bytes(RowCode::b3, 448) == 2 + 14 * (1 + 12));
  CHECK(row_bytes(RowCode::b4, 33) == 2 + 2 * (1 + 16));
  CHECK(row_bytes(RowCode::b8, 96) == 2 + 3 * (1 + 32));
}

TEST_CASE("what is packed is unpacked again") {
  std::mt19937 random(7);
  for (const RowCode code : kCodes) {
    for (const std::int64_t columns : {1, 31, 32, 33, 96, 160, 448}) {
      const CodedRow row = random_row(code, columns, random);
      std::vector<std::byte> bytes(row_bytes(code, columns), std::byte{0xff});
      pack_row(code, row, bytes);
      CHECK(unpack_row(code, bytes, columns) == row);
    }
  }
}

TEST_CASE("bits lie where the header says") {
  CodedRow row{0x3c01, {9, 7}, std::vector<std::uint8_t>(64, 0)};
  row.codes[0] = 5;   // Three bits: lower two 01, upper one 1.
  row.codes[9] = 6;   // 10 and 1, at place 16 + 4.
  row.codes[34] = 7;  // Of the second group, at place 1.
  std::vector<std::byte> bytes(row_bytes(RowCode::b3, 64));
  pack_row(RowCode::b3, row, bytes);
  std::vector<std::byte> expected(2 + 2 * 13);
  expected[0] = std::byte{0x01}, expected[1] = std::byte{0x3c};
  expected[2] = std::byte{9}, expected[2 + 13] = std::byte{7};
  expected[3] = std::byte{0b01};
  expected[3 + 5] = std::byte{0b10};  // Bits 40 and 41.
  expected[3 + 8] = std::byte{0b1};
  expected[3 + 8 + 2] = std::byte{0b10000};  // Bit 20.
  expected[16] = std::byte{0b1100};
  expected[16 + 8] = std::byte{0b10};
  CHECK(bytes == expected);

  CodedRow one{0x3c00, {1}, std::vector<std::uint8_t>(32, 0)};
  one.codes[3] = 0xa;
  std::vector<std::byte> four(row_bytes(RowCode::b4, 32)), eight(row_bytes(RowCode::b8, 32));
  pack_row(RowCode::b4, one, four);
  CHECK(four[3 + 1] == std::byte{0xa0});
  pack_row(RowCode::b8, one, eight);
  CHECK(eight[3 + 16 + 1] == std::byte{0xa});
}

TEST_CASE("a weight is the row's scale times the group's steps times its level") {
  CodedRow row{0x3800, {3, 200}, std::vector<std::uint8_t>(40, 0)};  // A half of 0.5.
  row.codes[1] = 15;
  row.codes[39] = 8;
  std::vector<std::byte> bytes(row_bytes(RowCode::b4, 40));
  pack_row(RowCode::b4, row, bytes);
  std::vector<float> out(40);
  decode_row(RowCode::b4, bytes, out);
  CHECK(out[0] == 1.5f * -2.7326f);
  CHECK(out[1] == 1.5f * 2.7326f);
  CHECK(out[39] == 100.0f * 0.1284f);
}

TEST_CASE("names") {
  for (const RowCode code : kCodes) CHECK(row_code_named(suffix_of(code)) == code);
  CHECK_FALSE(row_code_named("b5").has_value());
  CHECK_FALSE(row_code_named("").has_value());
}

}  // namespace sangam
