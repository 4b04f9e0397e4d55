// Models whose maps are stored in codes and corrections, beside the same models with the maps multiplied out.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "gpu/model/model.hpp"
#include "storage/coding/row_code.hpp"
#include "tests/unit/gpu_model/every_isa.hpp"
#include "tests/unit/gpu_model/paged_sequences.hpp"

namespace sangam::testing {
namespace {

ModelConfig small_model() {
  ModelConfig c;
  c.architecture = Architecture::llama;
  c.vocab_size = 61;
  c.hidden_size = 96;
  c.intermediate_size = 160;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 24;
  c.context = 128;
  c.tied_embeddings = true;
  return c;
}

/// Tensors of one model by name, each with its bytes.
class Tensors {
 public:
  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, std::vector<std::byte> bytes) {
    all_[name] = {dtype, std::move(shape), std::move(bytes)};
  }
  void add_floats(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    add(name, DType::f32, std::move(shape), {bytes.begin(), bytes.end()});
  }
  [[nodiscard]] SlotLookup lookup() const {
    return [this](std::string_view name) -> Result<TensorView> {
      const auto found = all_.find(std::string(name));
      if (found == all_.end()) return make_error(ErrorCode::not_found, std::string(name) + ": no such tensor");
      return TensorView{found->second.dtype, found->second.shape, found->second.bytes};
    };
  }
  void forget(const std::string& name) { all_.erase(name); }

 private:
  struct Stored {
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Stored> all_;
};

/// The same model twice: in parts, and with each map as one matrix in fp32.
class TwoForms {
 public:
  explicit TwoForms(const ModelConfig& c) {
    map("model.embed_tokens", c.vocab_size, c.hidden_size, {RowCode::b8, RowCode::b2, false});
    norm("model.norm.weight", c.hidden_size);
    const std::int64_t query = c.heads * c.head_dim, key = c.kv_heads * c.head_dim;
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      norm(layer + "input_layernorm.weight", c.hidden_size);
      norm(layer + "post_attention_layernorm.weight", c.hidden_size);
      map(layer + "self_attn.q_proj", query, c.hidden_size, {RowCode::b4, RowCode::b1, true});
      map(layer + "self_attn.k_proj", key, c.hidden_size, {std::nullopt, RowCode::b3, true});
      map(layer + "self_attn.v_proj", key, c.hidden_size, {RowCode::b8, std::nullopt, true});
      map(layer + "self_attn.o_proj", c.hidden_size, query, {RowCode::b3, std::nullopt, false});
      map(layer + "mlp.gate_proj", c.intermediate_size, c.hidden_size, {RowCode::b2, RowCode::b4, true});
      map(layer + "mlp.up_proj", c.intermediate_size, c.hidden_size, {std::nullopt, std::nullopt, true});
      map(layer + "mlp.down_proj", c.hidden_size, c.intermediate_size, {RowCode::b8, RowCode::b1, true});
    }
  }

  Tensors parts, whole;

 private:
  struct Form {
    std::optional<RowCode> canonical;  ///< None: fp32.
    std::optional<RowCode> delta;
    bool corrected;  ///< Rows' scale and shift, and a low-rank part.
  };

  std::vector<float> uniform(std::int64_t count, float low, float high) {
    std::uniform_real_distribution<float> next(low, high);
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(next(random_));
    return values;
  }

  void norm(const std::string& name, std::int64_t size) {
    const std::vector<float> values = uniform(size, 0.8f, 1.2f);
    parts.add_floats(name, {size}, values);
    whole.add_floats(name, {size}, values);
  }

  /// Random rows of about `reach`; what they decode to.
  std::vector<float> coded(const std::string& kind, RowCode code, std::int64_t rows, std::int64_t columns, float reach) {
    const std::size_t stride = row_bytes(code, columns);
    std::vector<std::byte> bytes(std::size_t(rows) * stride);
    std::vector<float> values(std::size_t(rows * columns), 0.0f);
    // A half of 2^-n with n up to 14; a group's steps and the largest level make the rest.
    const double unit = double(reach) / (128.0 * double(levels(code).back()));
    const auto exponent = std::max(1, 15 + int(std::floor(std::log2(unit))));
    for (std::size_t row = 0; row < std::size_t(rows); ++row) {
      CodedRow one{std::uint16_t(exponent << 10), {}, {}};
      for (std::int64_t g = 0; g < groups_of(columns); ++g) one.group_scales.push_back(std::uint8_t(64 + random_() % 128));
      for (std::int64_t k = 0; k < columns; ++k) one.codes.push_back(std::uint8_t(random_() % (1u << bits_of(code))));
      const std::span<std::byte> at(bytes.data() + row * stride, stride);
      pack_row(code, one, at);
      decode_row(code, at, std::span(values).subspan(row * std::size_t(columns), std::size_t(columns)));
    }
    parts.add(kind + "." + std::string(suffix_of(code)), DType::u8, {rows, std::int64_t(stride)}, std::move(bytes));
    return values;
  }

  void map(const std::string& name, std::int64_t rows, std::int64_t columns, const Form& form) {
    const float reach = 1.5f / std::sqrt(float(columns));
    std::vector<float> values;
    if (form.canonical) {
      values = coded(name + ".weight", *form.canonical, rows, columns, reach);
    } else {
      values = uniform(rows * columns, -reach, reach);
      parts.add_floats(name + ".weight", {rows, columns}, values);
    }
    std::vector<double> sum(values.begin(), values.end());
    const bool table = name == "model.embed_tokens";
    const std::vector<float> scale = uniform(rows, 0.7f, 1.3f), shift = uniform(rows, -0.02f, 0.02f);
    const std::vector<float> down = uniform(5 * columns, -0.1f, 0.1f), up = uniform(rows * 5, -0.1f, 0.1f);
    if (form.corrected || table) parts.add_floats(name + ".row_scale", {rows}, scale);
    for (std::int64_t i = 0; (form.corrected || table) && i < rows * columns; ++i) {
      sum[std::size_t(i)] *= double(scale[std::size_t(i / columns)]);
    }
    if (form.delta) {
      const std::vector<float> delta = coded(name + ".delta", *form.delta, rows, columns, reach / 8);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double(delta[i]);
    }
    if (form.corrected) {
      parts.add_floats(name + ".row_shift", {rows}, shift);
      parts.add_floats(name + ".low_rank.down", {5, columns}, down);
      parts.add_floats(name + ".low_rank.up", {rows, 5}, up);
      for (std::int64_t i = 0; i < rows * columns; ++i) {
        const std::int64_t row = i / columns, column = i % columns;
        sum[std::size_t(i)] += double(shift[std::size_t(row)]);
        for (std::int64_t r = 0; r < 5; ++r) {
          sum[std::size_t(i)] += double(up[std::size_t(row * 5 + r)]) * double(down[std::size_t(r * columns + column)]);
        }
      }
    }
    whole.add_floats(name + ".weight", {rows, columns}, {sum.begin(), sum.end()});
  }

  std::mt19937 random_{11};
};

std::vector<TokenId> prompt() {
  std::vector<TokenId> tokens;
  for (std::uint32_t i = 0; i < 40; ++i) tokens.push_back(i * 17 % 61);
  return tokens;
}

std::vector<float> logits_of(const SlotLookup& slots, Ops& ops, std::size_t chunk) {
  auto model = Model::create(small_model(), slots, ops);
  REQUIRE_MESSAGE(model, model.error().context);
  PagedSequences sequences(**model, 16, 8);
  return sequences.prefill(sequences.add(), prompt(), chunk);
}

TEST_CASE("a model in parts gives the logits of the same model multiplied out") {
  const TwoForms model(small_model());
  for_every_isa(2, [&](Ops& ops) {
    const std::vector<float> parts = logits_of(model.parts.lookup(), ops, 40);
    const std::vector<float> whole = logits_of(model.whole.lookup(), ops, 40);
    REQUIRE(parts.size() == whole.size());
    // Fourteen maps round at 2^-24 of sums of 160 terms, keys and values to halves, that is 2^-11 of a value, which may
    // fall to either side: together some thousandths of logits of about one.
    for (std::size_t i = 0; i < parts.size(); ++i) CHECK(std::abs(parts[i] - whole[i]) < 5e-3f);
  });
}

TEST_CASE("a model in parts gives the same bits in chunks of any size and with any number of threads") {
  const TwoForms model(small_model());
  for_every_isa(1, [&](Ops& ops) {
    const std::vector<float> once = logits_of(model.parts.lookup(), ops, 40);
    for (int threads = 1; threads <= 3; ++threads) {
      auto others = make_cpu_ops({isa_named(ops.name()).value(), threads}).value();
      for (const std::size_t chunk : {1, 2, 3, 7, 40}) {
        const std::vector<float> again = logits_of(model.parts.lookup(), *others, chunk);
        CHECK(std::memcmp(again.data(), once.data(), once.size() * sizeof(float)) == 0);
      }
    }
  });
}

TEST_CASE("parts that do not fit together, are missing or misshapen are refused by name") {
  const auto refused = [](const auto& change) {
    TwoForms model(small_model());
    change(model.parts);
    auto ops = make_cpu_ops({Isa::best, 1}).value();
    const auto made = Model::create(small_model(), model.parts.lookup(), *ops);
    return made ? "nothing" : made.error().context;
  };
  const std::string q = "model.layers.1.self_attn.q_proj", v = "model.layers.0.self_attn.v_proj";
  CHECK(refused([](Tensors&) {}) == "nothing");
  CHECK(refused([&](Tensors& t) { t.forget(q + ".low_rank.down"); }).find(q + ".low_rank.down") == 0);
  CHECK(refused([&](Tensors& t) { t.forget(q + ".weight.b4"); }).find(q + ".weight") == 0);
  CHECK(refused([&](Tensors& t) { t.add_floats(q + ".weight", {96, 96}, {}); }).find(q + ".weight and") == 0);
  CHECK(refused([&](Tensors& t) { t.add_floats(q + ".row_scale", {95}, std::vector<float>(95)); }).find(q + ".row_scale") == 0);
  CHECK(refused([&](Tensors& t) { t.add(v + ".weight.b8", DType::u8, {48, 98}, {}); }).find(v + ".weight.b8") == 0);
  CHECK(refused([&](Tensors& t) { t.add_floats(v + ".delta.b1", {48, 17}, {}); }).find(v + ".delta.b1") == 0);
  CHECK(refused([&](Tensors& t) { t.add_floats("model.embed_tokens.row_shift", {61}, {}); })
            .find("model.embed_tokens.row_shift") == 0);
}

}  // namespace
}  // namespace sangam::testing
