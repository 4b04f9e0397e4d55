// What a model refuses to be made of, and the sizes that it asks of a pool.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "bench/engine/random_model.hpp"
#include "gpu/kernels/cpu/cpu_ops.hpp"
#include "gpu/model/model.hpp"

namespace sangam::testing {
namespace {

ModelConfig tiny_model() {
  ModelConfig c;
  c.architecture = Architecture::qwen3;
  c.vocab_size = 20;
  c.hidden_size = 16;
  c.intermediate_size = 24;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 8;
  c.context = 64;
  c.qkv_bias = c.output_bias = c.mlp_bias = c.qk_norm = true;
  return c;
}

/// The model over `weights`, after `change(name, tensor)` had its way with each tensor.
template <class Change>
Result<std::unique_ptr<Model>> create(const ModelConfig& config, const RandomModel& weights, Ops& ops,
                                      Change change) {
  const auto slots = [&](std::string_view name) -> Result<TensorView> {
    Result<TensorView> tensor = weights.tensor(name);
    if (tensor) change(name, *tensor);
    return tensor;
  };
  return Model::create(config, slots, ops);
}

TEST_CASE("every tensor that is missing, misshapen or cut is refused by its name") {
  auto ops = make_cpu_ops({Isa::best, 1}).value();
  const RandomModel weights(tiny_model(), 1);
  for (const auto& [name, tensor] : weights.tensors()) {
    CAPTURE(name);
    const auto without = [&](std::string_view wanted) -> Result<TensorView> {
      if (wanted == name) return make_error(ErrorCode::not_found, std::string(wanted) + ": no such tensor");
      return weights.tensor(wanted);
    };
    CHECK(Model::create(weights.config(), without, *ops).error().context.find(name) == 0);
    const auto misshapen =
        create(weights.config(), weights, *ops, [&](std::string_view at, TensorView& view) {
          if (at == name) view.shape.back() += 1;
        });
    CHECK(misshapen.error().context.find(name) == 0);
    CHECK(misshapen.error().code == ErrorCode::invalid_input);
    const auto cut = create(weights.config(), weights, *ops, [&](std::string_view at, TensorView& view) {
      if (at == name) view.bytes = view.bytes.first(view.bytes.size() - 2);
    });
    CHECK(cut.error().context.find(name) == 0);
    const auto mistyped = create(weights.config(), weights, *ops, [&](std::string_view at, TensorView& view) {
      if (at == name) view.dtype = DType::i8;
    });
    CHECK(mistyped.error().context.find(name) == 0);
  }
}

TEST_CASE("a configuration that no tensor could satisfy is refused") {
  auto ops = make_cpu_ops({Isa::best, 1}).value();
  const RandomModel weights(tiny_model(), 1);
  const auto refused = [&](auto change) {
    ModelConfig config = tiny_model();
    change(config);
    return !create(config, weights, *ops, [](std::string_view, TensorView&) {}).has_value();
  };
  CHECK(refused([](ModelConfig& c) { c.layers = 0; }));
  CHECK(refused([](ModelConfig& c) { c.kv_heads = 3; }));
  CHECK(refused([](ModelConfig& c) { c.head_dim = 7; }));
  CHECK_FALSE(refused([](ModelConfig&) {}));
}

TEST_CASE("a tied model takes its head from the embedding and looks for no other") {
  auto ops = make_cpu_ops({Isa::best, 1}).value();
  ModelConfig config = tiny_model();
  config.tied_embeddings = true;
  const RandomModel weights(config, 1);
  std::set<std::string, std::less<>> seen;
  CHECK(create(config, weights, *ops, [&](std::string_view name, TensorView&) {
          seen.emplace(name);
        }).has_value());
  CHECK_FALSE(seen.contains("lm_head.weight"));
  CHECK(seen.size() == weights.tensors().size());
}

TEST_CASE("a page holds as many tokens as fit, and a page too small holds none") {
  auto ops = make_cpu_ops({Isa::best, 1}).value();
  const RandomModel weights(tiny_model(), 1);
  const auto model = create(weights.config(), weights, *ops, [](std::string_view, TensorView&) {}).value();
  // 2 layers, keys and values, 2 heads of 8 elements of 2 bytes.
  CHECK(model->kv_bytes_per_token() == 2 * 2 * 2 * 8 * 2);
  CHECK(model->tokens_per_page(4096) == 32);
  CHECK(model->tokens_per_page(4095) == 31);
  CHECK(model->tokens_per_page(127) == 0);
}

}  // namespace
}  // namespace sangam::testing
