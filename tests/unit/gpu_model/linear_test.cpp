// Linear maps of shared, coded and corrected weights against the formula in double precision, which decodes rows by the
// reference alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/unit/gpu_model/every_isa.hpp"

namespace sangam::testing {
namespace {

constexpr RowCode kRowCodes[] = {RowCode::b1, RowCode::b2, RowCode::b3, RowCode::b4, RowCode::b8};

/// A matrix with its bytes, one of them unused, since checkpoints do not promise alignment.
struct Weights {
  std::vector<std::byte> bytes;
  Matrix matrix;
  std::vector<double> values;  // (rows, columns)
};

Weights coded(RowCode code, std::int64_t rows, std::int64_t columns, std::mt19937& random) {
  Weights w;
  const std::size_t stride = row_bytes(code, columns);
  w.bytes.resize(1 + std::size_t(rows) * stride);
  for (std::int64_t row = 0; row < rows; ++row) {
    // Row scales from 2^-14 to 2^-12: with the group's steps, about 0.01.
    CodedRow coded_row{std::uint16_t(0x0400 + random() % 0x0800), {}, {}};
    for (std::int64_t g = 0; g < groups_of(columns); ++g) coded_row.group_scales.push_back(std::uint8_t(random()));
    for (std::int64_t k = 0; k < columns; ++k) coded_row.codes.push_back(std::uint8_t(random() % (1u << bits_of(code))));
    const std::span<std::byte> at(w.bytes.data() + 1 + std::size_t(row) * stride, stride);
    pack_row(code, coded_row, at);
    std::vector<float> decoded(std::size_t(columns), 0.0f);
    decode_row(code, at, decoded);
    w.values.insert(w.values.end(), decoded.begin(), decoded.end());
  }
  w.matrix = {w.bytes.data() + 1, DType::u8, rows, columns, code};
  return w;
}

/// Values that each type holds exactly: eighths up to 1.
Weights plain(DType dtype, std::int64_t rows, std::int64_t columns, std::mt19937& random) {
  Weights w;
  const std::size_t size = bytes_of(dtype);
  for (std::int64_t i = 0; i < rows * columns; ++i) w.values.push_back((double(random() % 17) - 8.0) / 8.0);
  w.bytes.resize(1 + w.values.size() * size);
  for (std::size_t i = 0; i < w.values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(float(w.values[i]));
    std::byte* at = w.bytes.data() + 1 + i * size;
    if (dtype == DType::f32) std::memcpy(at, &bits, 4);
    // A half of an eighth has the float's sign, exponent less 112, and the upper bits of the mantissa.
    const bool zero = w.values[i] == 0;
    const auto half = std::uint16_t((bits >> 16 & 0x8000u) | (zero ? 0 : ((bits & 0x7fffffffu) - (112u << 23)) >> 13));
    const auto brain = std::uint16_t(bits >> 16);
    if (dtype != DType::f32) std::memcpy(at, dtype == DType::f16 ? &half : &brain, 2);
  }
  w.matrix = {w.bytes.data() + 1, dtype, rows, columns, {}};
  return w;
}

std::vector<float> floats(std::int64_t count, float low, float high, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(uniform(random));
  return values;
}

/// A map with all that it points to.
struct Map {
  Weights canonical, delta, down, up;
  Linear linear;

  Map() = default;
  Map(Map&&) = default;

  [[nodiscard]] double weight(std::int64_t row, std::int64_t column) const {
    const auto at = std::size_t(row * linear.canonical.columns + column);
    const double scale = linear.scale.empty() ? 1.0 : double(linear.scale[std::size_t(row)]);
    return scale * canonical.values[at] + (delta.values.empty() ? 0.0 : delta.values[at]);
  }
  [[nodiscard]] double low_rank(std::int64_t row, std::int64_t column) const {
    double sum = 0;
    for (std::int64_t i = 0; i < down.matrix.rows; ++i) {
      sum += up.values[std::size_t(row * down.matrix.rows + i)] *
             down.values[std::size_t(i * linear.canonical.columns + column)];
    }
    return sum;
  }
};

struct Kind {
  std::optional<RowCode> canonical{};
  DType dtype = DType::bf16;
  std::optional<RowCode> delta{};
  bool affine = false;
  std::int64_t rank = 0;
};

Map make_map(const Kind& kind, std::int64_t rows, std::int64_t columns, std::mt19937& random) {
  Map map;
  map.canonical = kind.canonical ? coded(*kind.canonical, rows, columns, random) : plain(kind.dtype, rows, columns, random);
  map.linear.canonical = map.canonical.matrix;
  if (kind.delta) {
    map.delta = coded(*kind.delta, rows, columns, random);
    map.linear.delta = map.delta.matrix;
  }
  if (kind.affine) {
    map.linear.scale = floats(rows, 0.5f, 1.5f, random);
    map.linear.shift = floats(rows, -1.0f, 1.0f, random);
  }
  if (kind.rank > 0) {
    map.down = plain(DType::bf16, kind.rank, columns, random);
    map.up = plain(DType::bf16, rows, kind.rank, random);
    map.linear.down = map.down.matrix;
    map.linear.up = map.up.matrix;
  }
  return map;
}

/// Every format of the canonical with every one of the delta, then what corrects rows.
std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  std::vector<std::optional<RowCode>> deltas{std::nullopt};
  for (const RowCode code : kRowCodes) deltas.emplace_back(code);
  for (const auto& delta : deltas) {
    for (const RowCode code : kRowCodes) kinds.push_back({code, DType::u8, delta, delta == RowCode::b2, 0});
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) kinds.push_back({{}, dtype, delta, true, 0});
  }
  kinds.push_back({{}, DType::bf16, {}, false, 16});
  kinds.push_back({RowCode::b4, DType::u8, {}, true, 5});
  kinds.push_back({{}, DType::f32, RowCode::b1, true, 33});
  return kinds;
}

/// y is compared with a bound of one rounding for each addition that a product passes through (Higham, Accuracy and
/// Stability, 4.2): four lanes over a block of 1024 columns, and some for what is added to them.
void check_map(Ops& ops, const Map& map, std::int64_t count, std::mt19937& random) {
  const std::int64_t rows = map.linear.canonical.rows, columns = map.linear.canonical.columns;
  const std::vector<float> x = floats(count * columns, -1.0f, 1.0f, random), bias = floats(rows, -2.0f, 2.0f, random);
  const std::vector<float> before = floats(count * rows, -2.0f, 2.0f, random);
  std::vector<float> out(std::size_t(count * rows), NAN), added = before;
  const Projection both[] = {{&map.linear, nullptr, out.data(), false}, {&map.linear, bias.data(), added.data(), true}};
  ops.linear({x.data(), count, columns}, both);
  for (std::int64_t m = 0; m < count; ++m) {
    for (std::int64_t n = 0; n < rows; ++n) {
      double sum = 0, magnitude = 8, shift = 0;
      for (std::int64_t k = 0; k < columns; ++k) {
        const auto column = double(x[std::size_t(m * columns + k)]);
        const double low_rank = map.low_rank(n, k);
        sum += (map.weight(n, k) + low_rank) * column;
        magnitude += std::abs(map.weight(n, k) * column) + std::abs(column) * double(map.down.matrix.rows);
        shift += column;
      }
      if (!map.linear.shift.empty()) sum += double(map.linear.shift[std::size_t(n)]) * shift, magnitude += double(columns);
      const auto at = std::size_t(m * rows + n);
      const double bound = (double(std::min<std::int64_t>(columns, 1024)) / 4 + 60) * 0x1p-24 * magnitude;
      REQUIRE(std::abs(double(out[at]) - sum) < bound);
      REQUIRE(std::abs(double(added[at]) - sum - double(bias[std::size_t(n)]) - double(before[at])) < bound);
    }
  }
}

TEST_CASE("linear maps of every format agree with the formula in double precision at any width") {
  for_every_isa(2, [](Ops& ops) {
    std::mt19937 random(3);
    for (const Kind& kind : all_kinds()) {
      CAPTURE(kind.canonical.has_value());
      CAPTURE(int(kind.canonical.value_or(RowCode::b1)));
      CAPTURE(int(kind.dtype));
      CAPTURE(kind.delta.has_value());
      CAPTURE(int(kind.delta.value_or(RowCode::b1)));
      for (const std::int64_t columns : {1, 33, 96, 160}) {
        CAPTURE(columns);
        check_map(ops, make_map(kind, 13, columns, random), 3, random);
      }
      check_map(ops, make_map(kind, 70, 1100, random), 1, random);  // More than a block of columns,
    }
    check_map(ops, make_map({RowCode::b3, DType::u8, RowCode::b1, true, 4}, 150, 100, random), 70, random);  // and of rows.
  });
}

TEST_CASE("linear maps of every format give a row the same bits alone, in any batch, and with any number of threads") {
  const std::int64_t rows = 83, columns = 1090, count = 70;
  std::mt19937 random(4);
  const std::vector<float> x = floats(count * columns, -1.0f, 1.0f, random);
  for (const Kind& kind : all_kinds()) {
    const Map map = make_map(kind, rows, columns, random);
    for_every_isa(1, [&](Ops& ops) {
      std::vector<float> alone(std::size_t(count * rows));
      for (std::int64_t m = 0; m < count; ++m) {
        const Projection one[] = {{&map.linear, nullptr, alone.data() + m * rows, false}};
        ops.linear({x.data() + m * columns, 1, columns}, one);
      }
      for (int threads = 1; threads <= 3; ++threads) {
        auto others = make_cpu_ops({isa_named(ops.name()).value(), threads}).value();
        for (const std::int64_t batch : {2, 3, 5, 32, 70}) {
          std::vector<float> together(std::size_t(batch * rows));
          const Projection all[] = {{&map.linear, nullptr, together.data(), false}};
          others->linear({x.data(), batch, columns}, all);
          CHECK(std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)) == 0);
        }
      }
    });
  }
}

TEST_CASE("maps that read one input may be of different formats") {
  std::mt19937 random(5);
  const std::int64_t columns = 200, count = 4;
  const Map maps[] = {make_map({{}, DType::f16, {}, false, 7}, 30, columns, random),
                      make_map({RowCode::b4}, 17, columns, random),
                      make_map({{}, DType::bf16, RowCode::b1, true, 3}, 40, columns, random)};
  const std::vector<float> x = floats(count * columns, -1.0f, 1.0f, random);
  for_every_isa(2, [&](Ops& ops) {
    std::vector<float> alone[3], together[3];
    std::vector<Projection> projections;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto size = std::size_t(count * maps[i].linear.canonical.rows);
      alone[i].resize(size), together[i].resize(size);
      const Projection one[] = {{&maps[i].linear, nullptr, alone[i].data(), false}};
      ops.linear({x.data(), count, columns}, one);
      projections.push_back({&maps[i].linear, nullptr, together[i].data(), false});
    }
    ops.linear({x.data(), count, columns}, projections);
    for (std::size_t i = 0; i < 3; ++i) CHECK(alone[i] == together[i]);
  });
}

TEST_CASE("a row of an embedding is the row of its map, whatever the format") {
  std::mt19937 random(6);
  for_every_isa(1, [&](Ops& ops) {
    for (const Kind& kind : {Kind{RowCode::b8}, Kind{RowCode::b3, DType::u8, RowCode::b1, true, 0},
                             Kind{{}, DType::bf16, RowCode::b2, false, 0}, Kind{{}, DType::f32, {}, true, 0}}) {
      const Map map = make_map(kind, 9, 37, random);
      const TokenId tokens[] = {8, 0, 3};
      std::vector<float> out(3 * 37);
      ops.embed(map.linear, tokens, out.data());
      for (std::size_t i = 0; i < out.size(); ++i) {
        CHECK(std::abs(double(out[i]) - map.weight(tokens[i / 37], std::int64_t(i % 37))) < 1e-6);
      }
    }
  });
}

}  // namespace
}  // namespace sangam::testing
