// A model of any configuration with random bf16 weights, in memory: for measurements and for tests of shapes
// that no shipped model has.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/engine/huge_pages.hpp"
#include "messages/vocabulary/result.hpp"
#include "storage/checkpoint/model_config.hpp"
#include "storage/checkpoint/tensor.hpp"

namespace sangam {

class RandomModel {
 public:
  RandomModel(ModelConfig config, std::uint64_t seed) : config_(std::move(config)), state_(seed) {
    const std::int64_t hidden = config_.hidden_size;
    add("model.embed_tokens.weight", {config_.vocab_size, hidden}, 1.0);
    if (!config_.tied_embeddings) add_linear("lm_head", config_.vocab_size, hidden, false);
    add_norm("model.norm", hidden);
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) add_layer(layer);
  }

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }

  /// As a SlotLookup.
  [[nodiscard]] Result<TensorView> tensor(std::string_view name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end())
      return make_error(ErrorCode::not_found, std::string(name) + ": no such tensor");
    return found->second;
  }

  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& [name, tensor] : tensors_) sum += tensor.bytes.size();
    return sum;
  }

 private:
  void add_layer(std::int64_t layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t q_width = config_.heads * config_.head_dim;
    const std::int64_t kv_width = config_.kv_heads * config_.head_dim;
    add_norm(at + "input_layernorm", hidden);
    add_linear(at + "self_attn.q_proj", q_width, hidden, config_.qkv_bias);
    add_linear(at + "self_attn.k_proj", kv_width, hidden, config_.qkv_bias);
    add_linear(at + "self_attn.v_proj", kv_width, hidden, config_.qkv_bias);
    add_linear(at + "self_attn.o_proj", hidden, q_width, config_.output_bias);
    if (config_.qk_norm) add_norm(at + "self_attn.q_norm", config_.head_dim);
    if (config_.qk_norm) add_norm(at + "self_attn.k_norm", config_.head_dim);
    add_norm(at + "post_attention_layernorm", hidden);
    add_linear(at + "mlp.gate_proj", config_.intermediate_size, hidden, config_.mlp_bias);
    add_linear(at + "mlp.up_proj", config_.intermediate_size, hidden, config_.mlp_bias);
    add_linear(at + "mlp.down_proj", hidden, config_.intermediate_size, config_.mlp_bias);
  }

  void add_linear(const std::string& name, std::int64_t rows, std::int64_t columns, bool biased) {
    add(name + ".weight", {rows, columns}, 1.0 / std::sqrt(double(columns)));
    if (biased) add(name + ".bias", {rows}, 0.1);
  }

  void add_norm(const std::string& name, std::int64_t size) { add(name + ".weight", {size}, 0.2, 1.0); }

  /// Uniform values of the given standard deviation about `mean`.
  void add(const std::string& name, std::vector<std::int64_t> shape, double deviation, double mean = 0.0) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= std::size_t(extent);
    std::vector<std::uint16_t, HugePages<std::uint16_t>>& values = storage_[name];
    values.resize(count);
    const auto reach = float(deviation * std::sqrt(3.0));
    for (std::uint16_t& value : values) {
      const float uniform = float(next() >> 40) * 0x1p-23f - 1.0f;
      value = std::uint16_t(std::bit_cast<std::uint32_t>(float(mean) + reach * uniform) >> 16);
    }
    tensors_[name] = {DType::bf16, std::move(shape), std::as_bytes(std::span(values))};
  }

  /// xorshift64*
  std::uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }

  ModelConfig config_;
  std::uint64_t state_;
  std::map<std::string, std::vector<std::uint16_t, HugePages<std::uint16_t>>> storage_;
  std::map<std::string, TensorView, std::less<>> tensors_;
};

}  // namespace sangam
