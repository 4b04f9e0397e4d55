// Weights against configurations: missing, misshapen, left over, and the four combinations of tied heads.
#include "storage/checkpoint/tensor_check.hpp"

#include <algorithm>

#include "storage/checkpoint/model_folder.hpp"
#include "tests/unit/storage/folder.hpp"
#include "tests/unit/storage/safetensors_writer.hpp"

using namespace sangam;
using namespace sangam::tests;

namespace {

ModelConfig small_config(bool tied) {
  ModelConfig config;
  config.vocab_size = 10;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.tied_embeddings = tied;
  return config;
}

/// What transformers saves for this configuration, without the head (shapes from its modelling classes).
std::vector<Tensor> small_weights() {
  std::vector<Tensor> all = {{"model.embed_tokens.weight", {10, 8}, 1}, {"model.norm.weight", {8}, 2}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    all.push_back({layer + "self_attn.q_proj.weight", {24, 8}, 3});
    all.push_back({layer + "self_attn.k_proj.weight", {12, 8}, 3});
    all.push_back({layer + "self_attn.v_proj.weight", {12, 8}, 3});
    all.push_back({layer + "self_attn.o_proj.weight", {8, 24}, 3});
    all.push_back({layer + "mlp.gate_proj.weight", {12, 8}, 3});
    all.push_back({layer + "mlp.up_proj.weight", {12, 8}, 3});
    all.push_back({layer + "mlp.down_proj.weight", {8, 12}, 3});
    all.push_back({layer + "input_layernorm.weight", {8}, 3});
    all.push_back({layer + "post_attention_layernorm.weight", {8}, 3});
  }
  return all;
}

Result<TensorReport> check(const ModelConfig& config, const std::vector<Tensor>& tensors) {
  TemporaryFolder folder;
  folder.write("model.safetensors", shard_of(tensors));
  return check_tensors(config, Checkpoint::open(folder.path()).value());
}

std::vector<Tensor> plus(std::vector<Tensor> tensors, const Tensor& more) {
  tensors.push_back(more);
  return tensors;
}

std::vector<Tensor> without(std::vector<Tensor> tensors, const std::string& name) {
  std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
  return tensors;
}

const Tensor kHeadLikeEmbedding = {"lm_head.weight", {10, 8}, 1};
const Tensor kOtherHead = {"lm_head.weight", {10, 8}, 9};

}  // namespace

TEST_CASE("a tied model needs no head and takes a copy of the embedding for one") {
  for (const auto& tensors : {small_weights(), plus(small_weights(), kHeadLikeEmbedding)}) {
    const auto report = check(small_config(true), tensors).value();
    CHECK(report.tied_embeddings);
    CHECK(report.warnings.empty());
  }
}

TEST_CASE("a tied model with a head that differs is untied, with a warning that names both") {
  const auto report = check(small_config(true), plus(small_weights(), kOtherHead)).value();
  CHECK_FALSE(report.tied_embeddings);
  REQUIRE(report.warnings.size() == 1);
  CHECK(has(report.warnings[0], "lm_head.weight differs from model.embed_tokens.weight"));
}

TEST_CASE("an untied model has a head of its own, equal or not") {
  for (const Tensor& head : {kHeadLikeEmbedding, kOtherHead}) {
    const auto report = check(small_config(false), plus(small_weights(), head)).value();
    CHECK_FALSE(report.tied_embeddings);
    CHECK(report.warnings.empty());
  }
}

TEST_CASE("an untied model without a head is refused by the name of the tensor") {
  const auto refused = check(small_config(false), small_weights());
  CHECK(refused.error().code == ErrorCode::invalid_input);
  CHECK(has(refused.error().context, "'lm_head.weight' of shape [10, 8] is missing"));
  CHECK(has(refused.error().context, "tie_word_embeddings"));
}

TEST_CASE("a tied model without an embedding is refused even if it has a head") {
  const auto tensors = plus(without(small_weights(), "model.embed_tokens.weight"), kOtherHead);
  CHECK(has(check(small_config(true), tensors).error().context,
            "'model.embed_tokens.weight' of shape [10, 8] is missing"));
}

TEST_CASE("each parameter is needed, and its absence is named") {
  for (const Tensor& tensor : small_weights()) {
    const auto refused = check(small_config(true), without(small_weights(), tensor.name));
    CAPTURE(tensor.name);
    CHECK(has(refused.error().context, "'" + tensor.name + "' of shape"));
    CHECK_FALSE(has(refused.error().context, "more of"));
  }
  const auto two =
      without(without(small_weights(), "model.layers.1.mlp.up_proj.weight"), "model.norm.weight");
  CHECK(has(check(small_config(true), two).error().context, "(and 1 more of 20)"));
}

TEST_CASE("each parameter's shape is checked, and both shapes are named") {
  for (const Tensor& tensor : small_weights()) {
    Tensor longer = tensor;
    longer.shape.back() += 1;
    const auto refused = check(small_config(true), plus(without(small_weights(), tensor.name), longer));
    CAPTURE(tensor.name);
    CHECK(has(refused.error().context, "'" + tensor.name + "' has shape ["));
  }
  const auto transposed = plus(without(small_weights(), "model.layers.0.mlp.up_proj.weight"),
                               {"model.layers.0.mlp.up_proj.weight", {8, 12}, 3});
  CHECK(has(check(small_config(true), transposed).error().context,
            "has shape [8, 12], but config.json implies [12, 8]"));
}

TEST_CASE("weights that are integers are refused as quantised") {
  const auto packed = plus(without(small_weights(), "model.layers.0.mlp.up_proj.weight"),
                           {"model.layers.0.mlp.up_proj.weight", {12, 8}, 3, "I8", 1});
  const auto refused = check(small_config(true), packed);
  CHECK(has(refused.error().context, "'model.layers.0.mlp.up_proj.weight' has dtype I8"));
}

TEST_CASE("what is left over is named, one line each, except rotary frequencies") {
  auto tensors = plus(small_weights(), {"model.layers.0.self_attn.rotary_emb.inv_freq", {3}, 1, "F32", 4});
  tensors =
      plus(plus(tensors, {"model.layers.2.mlp.up_proj.weight", {12, 8}, 3}), {"score.weight", {2, 8}, 3});
  const auto report = check(small_config(true), tensors).value();
  REQUIRE(report.warnings.size() == 2);
  CHECK(has(report.warnings[0], "'model.layers.2.mlp.up_proj.weight' of shape [12, 8]"));
  CHECK(has(report.warnings[1], "'score.weight'"));
}

TEST_CASE("biases and head norms are expected where the configuration has them") {
  ModelConfig config = small_config(true);
  config.qkv_bias = config.output_bias = config.mlp_bias = config.qk_norm = true;
  auto tensors = small_weights();
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    tensors.push_back({layer + "self_attn.q_proj.bias", {24}, 1});
    tensors.push_back({layer + "self_attn.k_proj.bias", {12}, 1});
    tensors.push_back({layer + "self_attn.v_proj.bias", {12}, 1});
    tensors.push_back({layer + "self_attn.o_proj.bias", {8}, 1});
    tensors.push_back({layer + "self_attn.q_norm.weight", {6}, 1});
    tensors.push_back({layer + "self_attn.k_norm.weight", {6}, 1});
    tensors.push_back({layer + "mlp.gate_proj.bias", {12}, 1});
    tensors.push_back({layer + "mlp.up_proj.bias", {12}, 1});
    tensors.push_back({layer + "mlp.down_proj.bias", {8}, 1});
  }
  CHECK(check(config, tensors).value().warnings.empty());
  CHECK(has(check(config, small_weights()).error().context, "(and 17 more of 38)"));
  CHECK(check(small_config(true), tensors).value().warnings.size() == 18);
}

TEST_CASE("a model folder joins what its files say") {
  TemporaryFolder folder;
  folder.write(
      "config.json",
      R"({"model_type":"llama","vocab_size":10,"hidden_size":8,"intermediate_size":12,"num_hidden_layers":2,)"
      R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":6,"tie_word_embeddings":true,)"
      R"("torch_dtype":"bfloat16","eos_token_id":[2,3]})");
  folder.write("model.safetensors", shard_of(plus(small_weights(), kOtherHead)));
  auto model = open_model(folder.path()).value();
  CHECK(model.config.eos_tokens == std::vector<TokenId>{2, 3});
  CHECK_FALSE(model.config.tied_embeddings);
  CHECK(model.warnings.size() == 1);
  folder.write("generation_config.json", R"({"eos_token_id":[3,5],"temperature":0.5})");
  model = open_model(folder.path()).value();
  CHECK(model.config.eos_tokens == std::vector<TokenId>{2, 3, 5});
  CHECK(model.generation.temperature == 0.5);
}

TEST_CASE("every model that ships opens, fits its configuration and leaves nothing over") {
  int models = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(SANGAM_SOURCE_DIR) / "models")) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    CAPTURE(entry.path().string());
    const auto model = open_model(entry.path());
    REQUIRE_MESSAGE(model, model.error().context);
    ++models;
    CHECK(model->warnings.empty());
    CHECK(model->config.tied_embeddings);
    CHECK(model->config.dtype == DType::bf16);
    CHECK(model->config.vocab_size == 264);
    CHECK(model->config.bos_token == 257);
    CHECK(model->config.eos_tokens == std::vector<TokenId>{258});
    CHECK(model->generation.do_sample == false);
    CHECK(model->generation.max_new_tokens == 24);
    CHECK(model->checkpoint.tensor("model.norm.weight").value().dtype == DType::bf16);
  }
  CHECK(models == 15);
}

TEST_CASE("maps may be stored in parts, whose types and shapes are checked by name") {
  const std::string up = "model.layers.0.mlp.up_proj";  // (12, 8): rows of one group.
  const auto plain = without(small_weights(), up + ".weight");
  const auto coded = plus(plain, {up + ".weight.b4", {12, 2 + 17}, 3, "U8", 1});
  const auto corrected = plus(plus(coded, {up + ".delta.b1", {12, 2 + 5}, 3, "U8", 1}), {up + ".row_scale", {12}, 0, "F32", 4});
  for (const auto& tensors : {coded, corrected}) {
    const auto report = check(small_config(true), tensors);
    REQUIRE_MESSAGE(report, report.error().context);
    CHECK(report->warnings.empty());
  }
  const auto fault = [&](const std::vector<Tensor>& tensors) { return check(small_config(true), tensors).error().context; };
  CHECK(has(fault(plus(plain, {up + ".weight.b4", {12, 20}, 3, "U8", 1})), "'" + up + ".weight.b4' has shape [12, 20]"));
  CHECK(has(fault(plus(plain, {up + ".weight.b4", {12, 19}, 3, "I8", 1})), "'" + up + ".weight.b4' has dtype I8"));
  CHECK(has(fault(plus(coded, {up + ".row_shift", {12}, 0, "BF16", 2})), "'" + up + ".row_shift' has dtype BF16"));
  CHECK(has(fault(plus(coded, {up + ".weight", {12, 8}, 3})), up + ".weight and " + up + ".weight.b4"));
  CHECK(has(fault(plus(coded, {up + ".low_rank.up", {12, 2}, 3})), up + ".low_rank.down: missing"));
}

TEST_CASE("a head in parts is a copy only if it is the embedding's parts") {
  auto tensors = without(small_weights(), "model.embed_tokens.weight");
  tensors = plus(tensors, {"model.embed_tokens.weight.b8", {10, 2 + 33}, 3, "U8", 1});
  CHECK(check(small_config(true), tensors).value().tied_embeddings);
  CHECK(check(small_config(true), plus(tensors, {"lm_head.weight.b8", {10, 35}, 3, "U8", 1})).value().tied_embeddings);
  CHECK_FALSE(check(small_config(true), plus(tensors, {"lm_head.weight.b8", {10, 35}, 4, "U8", 1})).value().tied_embeddings);
  CHECK_FALSE(check(small_config(true), plus(tensors, kOtherHead)).value().tied_embeddings);
}
