// Paged attention against the plain formula in double precision, and its bits across pages, chunks and
// batches.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/unit/gpu_model/every_isa.hpp"

namespace sangam::testing {
namespace {

struct Case {
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t dim = 16;
  std::int64_t window = 0;
  std::int64_t tokens_per_page = 16;
  std::int64_t length = 150;
};

/// Multiples of 2^-8 within [-2, 2]: exact as 16-bit floats, so that storing them loses nothing.
std::vector<float> exact_halves(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = float(int(generator() % 1025) - 512) / 256.0f;
  return values;
}

/// One sequence, its tensors, and the attention of its rows.
class Attended {
 public:
  explicit Attended(const Case& c)
      : case_(c),
        q_(exact_halves(c.length * c.heads * c.dim, 1)),
        k_(exact_halves(c.length * c.kv_heads * c.dim, 2)),
        v_(exact_halves(c.length * c.kv_heads * c.dim, 3)) {}

  [[nodiscard]] std::vector<double> expected() const {
    std::vector<double> out;
    for (std::int64_t row = 0; row < case_.length; ++row) {
      for (std::int64_t head = 0; head < case_.heads; ++head) add_expected(row, head, out);
    }
    return out;
  }

  /// In steps of `chunk` rows; pages are dealt in an order that `seed` gives, and are garbage at first.
  [[nodiscard]] std::vector<float> compute(Ops& ops, std::int64_t chunk, std::uint32_t seed) const {
    const KvLayout layout{2, case_.kv_heads, case_.dim, case_.tokens_per_page};
    const auto count = std::size_t(case_.length / case_.tokens_per_page + 1);
    const std::size_t page_bytes = layout.bytes_per_token() * std::size_t(case_.tokens_per_page) + 2;
    std::vector<std::byte> memory(count * page_bytes, std::byte{0xff});
    std::vector<PageId> pages;
    for (std::size_t i = 0; i < count; ++i) pages.push_back(PageId(std::uint32_t(i)));
    std::shuffle(pages.begin(), pages.end(), std::mt19937(seed));
    std::vector<float> out(q_.size());
    for (std::int64_t at = 0; at < case_.length; at += chunk) {
      const KvRows rows[] = {{at, std::min(chunk, case_.length - at), pages}};
      const KvLayer kv{{memory.data(), page_bytes}, layout, 1, rows};
      ops.store_kv(kv, k_.data() + at * case_.kv_heads * case_.dim,
                   v_.data() + at * case_.kv_heads * case_.dim);
      const std::int64_t offset = at * case_.heads * case_.dim;
      ops.attention(kv, {case_.heads, 0.25f, case_.window}, q_.data() + offset, out.data() + offset);
    }
    return out;
  }

 private:
  void add_expected(std::int64_t row, std::int64_t head, std::vector<double>& out) const {
    const std::int64_t kv_head = head / (case_.heads / case_.kv_heads);
    const float* q = q_.data() + (row * case_.heads + head) * case_.dim;
    std::vector<double> sum(std::size_t(case_.dim), 0.0);
    double total = 0;
    for (std::int64_t at = 0; at <= row; ++at) {
      if (case_.window > 0 && at <= row - case_.window) continue;
      const std::int64_t offset = (at * case_.kv_heads + kv_head) * case_.dim;
      double dot = 0;
      for (std::int64_t i = 0; i < case_.dim; ++i) dot += double(q[i]) * double(k_[std::size_t(offset + i)]);
      const double weight = std::exp(0.25 * dot);
      total += weight;
      for (std::int64_t i = 0; i < case_.dim; ++i)
        sum[std::size_t(i)] += weight * double(v_[std::size_t(offset + i)]);
    }
    for (const double value : sum) out.push_back(value / total);
  }

  Case case_;
  std::vector<float> q_, k_, v_;
};

double largest_error(const std::vector<float>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::abs(double(values[i]) - expected[i]);
    largest = error <= largest ? largest : error;
  }
  return largest;
}

const Case kCases[] = {{},
                       {.heads = 7, .kv_heads = 1, .dim = 64, .tokens_per_page = 13},
                       {.heads = 3, .kv_heads = 3, .dim = 20, .tokens_per_page = 1},
                       {.heads = 40, .kv_heads = 1, .dim = 2, .length = 70},
                       {.window = 1},
                       {.window = 24, .tokens_per_page = 5},
                       {.heads = 6, .kv_heads = 2, .dim = 44, .window = 64, .length = 200},
                       {.dim = 128, .tokens_per_page = 1000, .length = 129}};

TEST_CASE("attention agrees with the plain formula for grouped heads, odd sizes and windows") {
  for_every_isa(2, [](Ops& ops) {
    for (const Case& c : kCases) {
      const Attended attended(c);
      CHECK(largest_error(attended.compute(ops, c.length, 1), attended.expected()) < 2e-6);
    }
  });
}

TEST_CASE("attention gives the same bits for any chunks, page order and number of threads") {
  for_every_isa(1, [](Ops& ops) {
    for (const Case& c : kCases) {
      const Attended attended(c);
      const std::vector<float> whole = attended.compute(ops, c.length, 1);
      for (const std::int64_t chunk : {1, 3, 7, 64}) {
        auto threaded = make_cpu_ops({isa_named(ops.name()).value(), int(1 + chunk % 3)}).value();
        const std::vector<float> chunked = attended.compute(*threaded, chunk, std::uint32_t(chunk));
        CHECK(std::memcmp(whole.data(), chunked.data(), whole.size() * sizeof(float)) == 0);
      }
    }
  });
}

TEST_CASE("attention gives the same bits whatever the pages hold of others, and however large they are") {
  for_every_isa(2, [](Ops& ops) {
    const std::vector<float> whole = Attended(Case{}).compute(ops, 150, 1);
    for (const std::int64_t tokens_per_page : {1, 5, 64, 200}) {
      const std::vector<float> other =
          Attended(Case{.tokens_per_page = tokens_per_page}).compute(ops, 150, 1);
      CHECK(std::memcmp(whole.data(), other.data(), whole.size() * sizeof(float)) == 0);
    }
  });
}

TEST_CASE("keys and values round to the nearest 16-bit float and saturate") {
  // Value and bits by IEEE 754: ties to even at 2^-11 above 1, the largest finite, subnormals, a signed zero.
  const std::pair<float, std::uint16_t> facts[] = {
      {1.0f, 0x3c00},         {1.0f + 0x1p-11f, 0x3c00}, {1.0f + 0x1.8p-10f, 0x3c02},
      {65504.0f, 0x7bff},     {65520.0f, 0x7bff},        {1e30f, 0x7bff},
      {-1e30f, 0xfbff},       {INFINITY, 0x7bff},        {0x1p-24f, 0x0001},
      {0x1.8p-24f, 0x0002},   {0x1p-25f, 0x0000},        {-0.0f, 0x8000},
      {0x1.ff8p-15f, 0x03ff}, {0x1.ffcp-15f, 0x0400},    {NAN, 0x7bff},
      {-2.5f, 0xc100}};
  for_every_isa(1, [&](Ops& ops) {
    std::vector<float> k;
    for (const auto& fact : facts) k.push_back(fact.first);
    const KvLayout layout{1, 1, std::int64_t(k.size()), 1};
    std::vector<std::uint16_t> memory(2 * k.size());
    const PageId pages[] = {PageId{0}};
    const KvRows rows[] = {{0, 1, pages}};
    ops.store_kv({{reinterpret_cast<std::byte*>(memory.data()), memory.size() * 2}, layout, 0, rows},
                 k.data(), k.data());
    for (std::size_t i = 0; i < k.size(); ++i) {
      CAPTURE(k[i]);
      CHECK(memory[i] == facts[i].second);
      CHECK(memory[k.size() + i] == facts[i].second);
    }
  });
}

}  // namespace
}  // namespace sangam::testing
