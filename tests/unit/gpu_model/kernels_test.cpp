// Each operation against the plain formula in double precision, at sizes that fill no vector and no tile.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/gpu_model/every_isa.hpp"

namespace sangam::testing {
namespace {

constexpr std::uint32_t kSeed = 20;

std::vector<float> random_floats(std::size_t count, float reach, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-reach, reach);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(generator);
  return values;
}

/// A matrix in its stored form, and what the stored values are.
struct Stored {
  std::vector<std::byte> bytes;
  std::vector<double> values;
  Linear linear;
};

/// One byte of offset: checkpoints do not promise alignment.
Stored random_matrix(DType dtype, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  Stored stored;
  const std::size_t size = bytes_of(dtype);
  const auto count = std::size_t(rows * columns);
  stored.bytes.resize(1 + count * size);
  std::mt19937 generator(seed);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* at = stored.bytes.data() + 1 + i * size;
    if (dtype == DType::f32) {
      const float value = float(int(generator() % 2001) - 1000) / 777.0f;
      std::memcpy(at, &value, size);
      stored.values.push_back(double(value));
      continue;
    }
    // Sign, an exponent from -3 to 0, random mantissa, in each format's own layout.
    const int mantissa_bits = dtype == DType::bf16 ? 7 : 10;
    const int bias = dtype == DType::bf16 ? 127 : 15;
    const auto mantissa = int(generator() % (1u << mantissa_bits));
    const int exponent = int(generator() % 4) - 3;
    const bool negative = generator() % 2 == 1;
    const auto raw = std::uint16_t((negative ? 0x8000 : 0) | ((bias + exponent) << mantissa_bits) | mantissa);
    std::memcpy(at, &raw, size);
    const double magnitude = std::ldexp(1.0 + double(mantissa) / double(1 << mantissa_bits), exponent);
    stored.values.push_back(negative ? -magnitude : magnitude);
  }
  stored.linear.canonical = {stored.bytes.data() + 1, dtype, rows, columns};
  return stored;
}

/// What summing `columns` products in fp32 may be off by, where `magnitude` is the sum of their absolute values: one
/// rounding of 2^-24 for each addition that a product passes through (Higham, Accuracy and Stability, 4.2). Four lanes
/// and blocks of 1024 columns make the longest way; a dozen roundings more for lanes, blocks, bias and residual.
double rounding_bound(std::int64_t columns, double magnitude) {
  const double additions = double(std::min<std::int64_t>(columns, 1024)) / 4 + double(columns) / 1024 + 12;
  return additions * 0x1p-24 * magnitude;
}

double largest_error(const std::vector<float>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::abs(double(values[i]) - expected[i]);
    largest = error <= largest ? largest : error;
  }
  return largest;
}

void check_linear(Ops& ops, DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t count) {
  CAPTURE(int(dtype));
  CAPTURE(rows);
  CAPTURE(columns);
  CAPTURE(count);
  const Stored w = random_matrix(dtype, rows, columns, kSeed);
  const std::vector<float> x = random_floats(std::size_t(count * columns), 1.0f, kSeed + 1);
  const std::vector<float> bias = random_floats(std::size_t(rows), 3.0f, kSeed + 2);
  const std::vector<float> before = random_floats(std::size_t(count * rows), 3.0f, kSeed + 3);
  std::vector<double> plain, biased_sum;
  double magnitude = 0;
  for (std::int64_t m = 0; m < count; ++m) {
    for (std::int64_t n = 0; n < rows; ++n) {
      double sum = 0, absolute = 6;  // Bias and residual reach 3 each.
      for (std::int64_t k = 0; k < columns; ++k) {
        const double product = w.values[std::size_t(n * columns + k)] * double(x[std::size_t(m * columns + k)]);
        sum += product;
        absolute += std::abs(product);
      }
      magnitude = std::max(magnitude, absolute);
      plain.push_back(sum);
      biased_sum.push_back(sum + double(bias[std::size_t(n)]) + double(before[std::size_t(m * rows + n)]));
    }
  }
  std::vector<float> out(plain.size(), NAN);
  std::vector<float> added = before;
  const Projection both[] = {{&w.linear, nullptr, out.data(), false},
                             {&w.linear, bias.data(), added.data(), true}};
  ops.linear({x.data(), count, columns}, both);
  const double tolerance = rounding_bound(columns, magnitude);
  CHECK(largest_error(out, plain) < tolerance);
  CHECK(largest_error(added, biased_sum) < tolerance);
}

TEST_CASE("linear maps agree with the double-precision sum for every type, odd sizes and any count of rows") {
  for_every_isa(2, [](Ops& ops) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      for (const std::int64_t columns : {1, 15, 16, 33, 200}) check_linear(ops, dtype, 13, columns, 5);
      for (std::int64_t count = 1; count <= 13; ++count) check_linear(ops, dtype, 21, 40, count);
      check_linear(ops, dtype, 150, 1100, 17);  // more than one block of rows and of columns
      check_linear(ops, dtype, 9, 2500, 1);
    }
  });
}

TEST_CASE("linear maps give the same bits for a row alone, in any batch, and with any number of threads") {
  const std::int64_t rows = 333, columns = 1500, count = 32;
  const std::vector<float> x = random_floats(std::size_t(count * columns), 1.0f, kSeed);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    const Stored w = random_matrix(dtype, rows, columns, kSeed);
    for_every_isa(1, [&](Ops& ops) {
      std::vector<float> alone(std::size_t(count * rows));
      for (std::int64_t m = 0; m < count; ++m) {
        const Projection one[] = {{&w.linear, nullptr, alone.data() + m * rows, false}};
        ops.linear({x.data() + m * columns, 1, columns}, one);
      }
      for (int threads = 1; threads <= 3; ++threads) {
        auto others = make_cpu_ops({isa_named(ops.name()).value(), threads}).value();
        for (std::int64_t batch = 2; batch <= count; ++batch) {
          std::vector<float> together(std::size_t(batch * rows));
          const Projection all[] = {{&w.linear, nullptr, together.data(), false}};
          others->linear({x.data(), batch, columns}, all);
          CHECK(std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)) == 0);
        }
      }
    });
  }
}

TEST_CASE("a row of an embedding is the stored values, exactly") {
  for_every_isa(1, [](Ops& ops) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      const Stored table = random_matrix(dtype, 7, 37, kSeed);
      const TokenId tokens[] = {6, 0, 3};
      std::vector<float> out(3 * 37);
      ops.embed(table.linear, tokens, out.data());
      for (std::size_t i = 0; i < out.size(); ++i)
        CHECK(double(out[i]) == table.values[tokens[i / 37] * 37 + i % 37]);
    }
  });
}

TEST_CASE("the RMS norm divides by the root of the mean square") {
  for_every_isa(2, [](Ops& ops) {
    for (const std::int64_t width : {1, 8, 37, 896}) {
      const std::vector<float> x = random_floats(std::size_t(3 * width), 4.0f, kSeed);
      const std::vector<float> weight = random_floats(std::size_t(width), 2.0f, kSeed + 1);
      std::vector<double> expected;
      for (std::size_t row = 0; row < 3; ++row) {
        double squares = 0;
        for (std::int64_t i = 0; i < width; ++i)
          squares += std::pow(double(x[row * std::size_t(width) + std::size_t(i)]), 2);
        const double scale = 1.0 / std::sqrt(squares / double(width) + 1e-5);
        for (std::int64_t i = 0; i < width; ++i) {
          expected.push_back(double(x[row * std::size_t(width) + std::size_t(i)]) * scale *
                             double(weight[std::size_t(i)]));
        }
      }
      std::vector<float> out(x.size());
      ops.rms_norm({x.data(), 3, width}, weight.data(), 1e-5f, out.data());
      CHECK(largest_error(out, expected) < 1e-5);
    }
  });
}

TEST_CASE("the gate is x / (1 + e^-x), from the far negative to the far positive") {
  for_every_isa(2, [](Ops& ops) {
    std::vector<float> gate, up;
    std::vector<double> expected;
    for (double x = -100.0; x <= 100.0; x += 0.037) {
      gate.push_back(float(x));
      up.push_back(float(1.0 + x / 200.0));
      expected.push_back(double(gate.back()) / (1.0 + std::exp(-double(gate.back()))) * double(up.back()));
    }
    ops.swiglu(gate.data(), up.data(), std::int64_t(gate.size()));
    for (std::size_t i = 0; i < gate.size(); ++i) {
      // Where e^-x would overflow, the exponent is held at 88: the gate is then about x e^-88, not 0.
      CHECK(std::abs(double(gate[i]) - expected[i]) <= 1e-6 * std::abs(expected[i]) + 1e-30);
    }
  });
}

TEST_CASE("heads turn by their row's angles, lane i with lane i + half") {
  for_every_isa(1, [](Ops& ops) {
    for (const std::int64_t dim : {2, 6, 16, 24, 128}) {
      const std::int64_t rows = 3, heads = 2, half = dim / 2;
      std::vector<float> x = random_floats(std::size_t(rows * heads * dim), 2.0f, kSeed);
      std::vector<float> cosine, sine;
      for (std::int64_t i = 0; i < rows * half; ++i)
        cosine.push_back(std::cos(float(i))), sine.push_back(std::sin(float(i)));
      std::vector<double> expected(x.size());
      for (std::int64_t h = 0; h < rows * heads; ++h) {
        for (std::int64_t i = 0; i < half; ++i) {
          const auto low = std::size_t(h * dim + i), high = low + std::size_t(half),
                     turn = std::size_t(h / heads * half + i);
          expected[low] = double(x[low]) * double(cosine[turn]) - double(x[high]) * double(sine[turn]);
          expected[high] = double(x[high]) * double(cosine[turn]) + double(x[low]) * double(sine[turn]);
        }
      }
      ops.rotate(x.data(), rows, heads, {cosine.data(), sine.data(), dim});
      CHECK(largest_error(x, expected) < 1e-6);
    }
  });
}

TEST_CASE("an instruction set is chosen by name, and an unknown one is refused with the names there are") {
  CHECK(isa_named("portable").value() == Isa::portable);
  CHECK(make_cpu_ops({isa_named("portable").value(), 1}).value()->name() == "portable");
  CHECK(isa_named("avx9").error().context.find("portable") != std::string::npos);
}

}  // namespace
}  // namespace sangam::testing
